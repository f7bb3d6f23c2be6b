"""Compares custom gradients with finite differences of their function, in the step that uses them."""
