"""The results for a run: a report, a comparison, a patch, a self-contained page."""
