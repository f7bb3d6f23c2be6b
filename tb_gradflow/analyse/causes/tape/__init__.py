"""A differentiable path leads to the loss, and the tape brought no gradient."""
