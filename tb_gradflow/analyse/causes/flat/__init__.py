"""A function is flat where this step uses it, so that its slope is zero or next to it."""
