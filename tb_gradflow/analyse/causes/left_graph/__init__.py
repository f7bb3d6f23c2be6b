"""The path leaves the part that TensorFlow differentiates: through Python, a stored value, or on purpose."""
