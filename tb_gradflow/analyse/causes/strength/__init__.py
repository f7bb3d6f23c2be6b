"""The gradient arrives, but it is too small or too large."""
