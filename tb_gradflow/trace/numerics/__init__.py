"""Arithmetic on tensors: their statistics, whether they are finite, and what a loss scale did to them."""
