"""Compares gradients with finite differences of their function. Uses only NumPy, whatever computes the function."""
