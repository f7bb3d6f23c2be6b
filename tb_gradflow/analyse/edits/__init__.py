"""Fixes as edits of the user's source: which lines, and what to write in their place."""
