"""Keeps the training identical to one without the recorder: random numbers, constants, objects and errors."""
