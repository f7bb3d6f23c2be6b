"""Observes a step while it is traced: each `tape.gradient`, loss scale, update and layer."""
