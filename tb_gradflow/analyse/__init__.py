"""Draws conclusions from records: from the structure and statistics of a step to findings in words.

Pure functions on records, with NumPy: no files, no clock, no TensorFlow. `diagnose.diagnose` is the entry point.
"""
