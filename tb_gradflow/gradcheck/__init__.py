"""Compares gradients with finite differences of their function. NumPy alone, whatever computes the function."""
