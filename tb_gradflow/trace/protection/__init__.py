"""Keeps the training as it is whatever fails in the recorder: nothing of the recorder runs but inside of this."""
