"""One trace, many functions: what TensorFlow traced is observed, and functions are made from it."""
