"""A gradient, a weight or the batch is NaN or infinite."""
