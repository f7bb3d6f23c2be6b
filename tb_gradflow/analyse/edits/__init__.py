"""Fixes as edits of the user's source: which lines to replace, and the new text."""
