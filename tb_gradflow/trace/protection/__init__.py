"""Keeps faults of the recorder away from the training: all that the recorder does for a training runs in here."""
