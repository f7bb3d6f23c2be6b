"""Keeps the training as it is without the recorder: its random numbers, constants, objects and errors."""
