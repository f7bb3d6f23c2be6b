"""What users get about a run: a report, a comparison, a patch, a self-contained page."""
