"""TensorFlow has no derivative for an op on the path, or none that is not zero."""
