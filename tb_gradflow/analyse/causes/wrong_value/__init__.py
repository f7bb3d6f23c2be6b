"""A gradient arrives, and it is not the one that was meant."""
