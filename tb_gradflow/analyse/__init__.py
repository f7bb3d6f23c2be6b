"""What a record means: from the structure of a step and its numbers to findings in words.

Pure functions on records, with NumPy: no files, no clock, no TensorFlow. `diagnose.diagnose` is the way in.
"""
