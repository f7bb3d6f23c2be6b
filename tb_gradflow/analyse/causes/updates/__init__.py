"""The gradient is fine, and the optimizer does not apply it as it is."""
