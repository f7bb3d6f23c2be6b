"""Records trainings of `tf.compat.v1` sessions: a recorded step fetches more in the program's own `run`."""

from tb_gradflow.trace.tf_internals.used_symbols import require_part

require_part("sessions")
