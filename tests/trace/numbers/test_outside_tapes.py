"""Gradient functions of the user's own, called where no tape of the user's sees them."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.trace.tf_internals.outside_tapes import untaped


def slope(x: Any) -> Any:
    """Opens a tape of its own."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    return tape.gradient(y, x)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("around", [contextlib.nullcontext, record.stop_recording])
def test_its_own_tape_records_and_the_users_does_not(persistent: bool, around: Any) -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as outer, tf.GradientTape(persistent=persistent) as tape:
        outer.watch(x)
        tape.watch(x)
        with around():
            found = untaped(slope, x)
        after = 5.0 * x

    assert float(found) == 12.0
    assert tape.gradient([found, after], x) == 5.0
    assert outer.gradient([found, after], x) == 5.0


def test_recording_is_stopped_afterwards_if_it_was_before() -> None:
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with record.stop_recording():
            untaped(slope, x)
            unseen = 5.0 * x

    assert tape.gradient(unseen, x) is None


def test_a_tape_that_is_open_in_another_thread_stays_open() -> None:
    x, begun, over = tf.constant(2.0), threading.Event(), threading.Event()
    answers = []

    def other() -> None:
        with tf.GradientTape() as tape:
            tape.watch(x)
            begun.set()
            over.wait()
            y = 5.0 * x
        answers.append(tape.gradient(y, x))

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    with tf.GradientTape():
        untaped(slope, x)
    over.set()
    thread.join()

    assert answers == [5.0]


def test_it_is_called_in_the_graph_of_the_caller() -> None:
    graphs = []

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            before = len(tf.compat.v1.get_default_graph().get_operations())
            untaped(lambda: None)
            graphs.append(len(tf.compat.v1.get_default_graph().get_operations()) == before)
            found = untaped(slope, x)
        graphs.append(found.graph is tf.compat.v1.get_default_graph())
        graphs.append(tape.gradient(found, x) is None)
        return found

    assert float(step(tf.constant(2.0))) == 12.0
    assert graphs == [True, True, True]


def test_what_it_raises_is_raised_here_and_tapes_are_open_as_before() -> None:
    x, calls = tf.constant(2.0), []

    def failing() -> None:
        calls.append(threading.current_thread())
        raise KeyError("mine")

    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError, match="mine"):
            untaped(failing)
        y = 5.0 * x

    assert tape.gradient(y, x) == 5.0
    assert calls == [threading.current_thread()]


def test_it_may_need_what_the_callers_thread_holds() -> None:
    """As one does that calls a function which is being traced."""
    lock = threading.RLock()

    def needing() -> int:
        with lock:
            return 3

    with lock, tf.GradientTape():
        assert untaped(needing) == 3
