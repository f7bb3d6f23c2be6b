"""The first step, and in it the first op and direction, at which two recorded runs differ beyond rounding."""
