"""Runs one step for `tb_gradflow.explain`, and rolls it back."""

from tb_gradflow.trace.tf_internals.used_symbols import require_part

require_part("explain")
