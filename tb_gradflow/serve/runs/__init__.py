"""Recorded runs on reading: their statistics, diagnoses and state, with caches for what is slow to compute."""
