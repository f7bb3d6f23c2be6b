"""`tb_gradflow.explain` of a loss in a `tf.compat.v1` graph, measured in a copy of that graph."""
