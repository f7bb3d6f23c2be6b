"""The steps of a training that the program compiles itself: which function runs each of them, and what is recorded."""
