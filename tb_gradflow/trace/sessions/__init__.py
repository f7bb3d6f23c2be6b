"""Records trainings of `tf.compat.v1` sessions: a recorded step fetches a few more tensors in the program's own `run`."""
