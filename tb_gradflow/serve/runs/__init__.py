"""Recorded runs as they are read: their statistics, diagnoses and state, with caches for what is slow to compute."""
