"""Losses are called what the user's line calls them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.loss_names import target_names


@pytest.mark.parametrize(
    ("line", "calls", "names"),
    [
        ("grads = tape.gradient(d_loss, weights)", 1, ["d_loss"]),
        ("grads = tape.gradient(target=d_loss, sources=weights)", 1, ["d_loss"]),
        ("gg, dg = g_tape.gradient(g_loss, g), d_tape.gradient(d_loss, d)", 2, ["g_loss", "d_loss"]),
        ("a, b = t.gradient(x, v), t.gradient(y, v)", 4, ["x", "y", "x", "y"]),
        ("second = outer.gradient(inner.gradient(y, x), x)", 2, ["y", "inner.gradient(y, x)"]),
        ("grads = (a.gradient(x, v),", 1, ["x"]),
        ("with a.gradient(x, v):", 1, ["x"]),
        ("x.gradient(", 1, ["loss"]),
        ("grads = differentiate()", 1, ["loss"]),
    ],
)
def test_a_loss_has_the_name_it_has_on_the_line(line: str, calls: int, names: Sequence[str], tmp_path: Path) -> None:
    file = tmp_path / "step.py"
    file.write_text(f"{line}\n")

    assert list(target_names([[Frame(str(file), 1, "step")]] * calls)) == names
