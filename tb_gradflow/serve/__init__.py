"""Presents records and reports: the TensorBoard plugin, text, and formats for CI. Never imports TensorFlow."""
