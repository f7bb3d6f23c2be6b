"""What the recorded steps of a run say together: since when weights are not finite, and which never change."""
