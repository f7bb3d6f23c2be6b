"""The terms of a loss that is a sum: which they are, their names, and the gradient of each."""
