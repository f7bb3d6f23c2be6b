"""Records the trainings of an unchanged program: each `fit`, compiled step and eager loop."""

from tb_gradflow.trace.tf_internals.used_symbols import require_part

require_part("program")
