"""The gradient is fine, but the optimizer does not apply it unchanged."""
