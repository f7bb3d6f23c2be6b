"""Arithmetic on tensors: their statistics, whether they are finite, and the effect of a loss scale."""
