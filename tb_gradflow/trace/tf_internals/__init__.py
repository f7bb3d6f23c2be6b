"""Uses of private TensorFlow and Keras functions, and temporary replacement of their functions."""
