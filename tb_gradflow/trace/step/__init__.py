"""The instrumented step: the user's own, which also returns its gradients, on one device or on many."""
