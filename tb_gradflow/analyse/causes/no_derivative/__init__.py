"""An op on the path has no derivative in TensorFlow, or one that is always zero."""
