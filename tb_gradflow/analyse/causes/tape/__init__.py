"""A differentiable path leads to the loss, but the tape returned no gradient."""
