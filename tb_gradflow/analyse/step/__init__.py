"""One recorded step: its gradients by variable and by op, and the status of each variable."""
