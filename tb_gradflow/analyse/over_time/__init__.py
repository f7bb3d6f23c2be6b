"""Conclusions from all recorded steps of a run: since when weights are not finite, and which never change."""
