"""Records trainings of `tf.compat.v1` sessions: a recorded step fetches more in the program's own `run`."""
