"""Writes and reads records: event files, their writer and their readers. Never imports TensorFlow."""
