"""Runs one step for `tb_gradflow.explain`, and rolls it back."""
