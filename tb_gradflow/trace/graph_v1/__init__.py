"""`tb_gradflow.explain` of a loss in a `tf.compat.v1` graph, measured in a copy of that graph."""

from tb_gradflow.trace.tf_internals.used_symbols import require_part

require_part("graph_v1")
