"""The gradient arrives, and is too small or too large."""
