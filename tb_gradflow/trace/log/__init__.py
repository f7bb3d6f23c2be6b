"""Decides which steps to record, measures what that costs, and writes the log."""
