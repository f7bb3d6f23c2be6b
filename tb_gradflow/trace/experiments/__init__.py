"""Runs the step of a training once more, on copies and with one thing changed."""
