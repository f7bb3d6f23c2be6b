"""Code that stands in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow

IPython = pytest.importorskip("IPython")

CELL = """\
import numpy as np, tensorflow as tf, tb_gradflow
threshold = tf.Variable(0.5, name="threshold")
def loss(x):
    inside = tf.cast(x > threshold, tf.float32)
    return tf.reduce_mean(inside * x)
report = tb_gradflow.explain(loss, args=(tf.constant([0.1, 0.9]),), variables=[threshold])
@tb_gradflow.watch(log_dir)
def step(x):
    with tf.GradientTape() as tape:
        error = loss(x)
    return tape.gradient(error, [threshold])
step(tf.constant([0.1, 0.9]))
step.flush()
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    yield IPython.core.interactiveshell.InteractiveShell.instance()
    IPython.core.interactiveshell.InteractiveShell.clear_instance()


def test_a_line_is_named_by_its_cell(shell: Any, tmp_path: Path) -> None:
    """As IPython's own tracebacks do, where a file's name would mean nothing to anybody."""
    shell.user_ns["log_dir"] = str(tmp_path / "log")
    shell.run_cell("1 + 1", store_history=True)

    shell.run_cell(CELL, store_history=True).raise_error()

    [finding] = shell.user_ns["report"].findings
    [logged] = tb_gradflow.open_log(tmp_path / "log").report().findings
    for each in (finding, logged):
        assert each.cause == "nondiff_comparison"
        assert "In[2]:4" in each.message
        assert each.source is not None
        assert (each.source.file, each.source.line) == ("In[2]", 4)
        assert each.source.code == "inside = tf.cast(x > threshold, tf.float32)"
