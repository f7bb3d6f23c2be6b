"""The path leaves what TensorFlow differentiates: for Python, for a stored value, or on purpose."""
