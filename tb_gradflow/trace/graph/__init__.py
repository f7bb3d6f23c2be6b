"""From TensorFlow's graph of a step to a `Trace`: its ops, its variables, and which ops propagate a gradient."""
