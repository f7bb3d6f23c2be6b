"""Builds the graph that an eager step would have been, while TensorFlow runs its ops one by one."""
