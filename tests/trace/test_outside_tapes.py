"""Gradient functions of the user's own, called where no tape of the user's sees them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import tensorflow as tf

from tb_gradflow.trace.tf_internals import outside_tapes as place
from tb_gradflow.trace.tf_internals.outside_tapes import untaped


def slope(x: Any) -> Any:
    """Opens a tape of its own."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    return tape.gradient(y, x)


def test_its_own_tape_records_and_the_users_does_not() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = untaped(slope, x)

    assert float(found) == 12.0
    assert tape.gradient(found, x) is None


def test_it_is_called_in_the_graph_of_the_caller() -> None:
    graphs = []

    @tf.function
    def step(x: Any) -> Any:
        found = untaped(slope, x)
        graphs.append(found.graph is tf.compat.v1.get_default_graph())
        return found

    assert float(step(tf.constant(2.0))) == 12.0
    assert graphs == [True]


def test_what_it_raises_is_raised_here() -> None:
    def failing() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        untaped(failing)


def test_one_that_waits_for_the_callers_thread_is_called_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that calls a function which is being traced."""
    monkeypatch.setattr(place, "PATIENCE", 0.2)
    lock = threading.RLock()

    def needing() -> int:
        with lock:
            return 3

    with lock:
        assert untaped(needing) == 3
