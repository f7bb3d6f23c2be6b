"""Calls that are alike run the graph that `tf.function` would have chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.signature_cache import AlikeCalls

ONES = tf.ones([2])

CALLS: dict[str, list[tuple[Any, ...]]] = {
    "shapes": [(ONES,), (tf.ones([3]),), (ONES,), (tf.ones([4, 1]),), (tf.ones([3]),)],
    "types": [(ONES,), (tf.cast(ONES, tf.float64),), (tf.constant(3),), (ONES,)],
    "numbers of Python's": [(ONES, 2), (ONES, 3), (ONES, 2), (ONES, True)],
    "arrays": [(np.ones(2, "float32"),), (np.ones(3, "float32"),)],
    "structures": [((ONES, [ONES]),), ({"a": ONES, "b": 2 * ONES},), ({"b": ONES, "a": 3 * ONES},), ((ONES, ONES),)],
    "parts that are missing": [((ONES, None),), ((ONES, ONES),), ((ONES, None),)],
    "sparse": [(tf.sparse.from_dense(ONES),), (ONES,), (tf.sparse.from_dense(2 * ONES),)],
    "variables": [(tf.Variable(2.0),), (tf.Variable(3.0),), (tf.constant(2.0),)],
}


def summed(*args: Any) -> Any:
    """A sum that tells its parts apart, and whether they were tensors."""
    flat = tf.nest.flatten(args, expand_composites=True)
    parts = [
        10.0**place * tf.reduce_sum(tf.cast(each, tf.float32)) for place, each in enumerate(flat) if each is not None
    ]
    return {"sum": tf.add_n(parts), "symbolic": sum(tf.is_symbolic_tensor(each) for each in flat)}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_has_the_results_of_the_function(name: str) -> None:
    plain, alike = tf.function(summed), executed(AlikeCalls(tf.function(summed)))

    for args in CALLS[name] * 3:
        assert _numbers(alike(*args)) == _numbers(plain(*args))


def executed(alike: AlikeCalls) -> Callable[..., Any]:
    return lambda *args: alike(Execution(), *args)


def _numbers(results: Any) -> dict[str, float]:
    return {name: float(value) for name, value in results.items()}


@pytest.mark.parametrize("devices", [[None], ["CPU:0", None]], ids=["one device", "two"])
def test_what_is_traced_is_what_the_function_would_trace(devices: list[str | None]) -> None:
    def traced(wrap: Callable[[Any], Any]) -> list[Any]:
        shapes = []

        @wrap
        @tf.function(reduce_retracing=True)
        def step(x: Any) -> Any:
            shapes.append(tuple(x.shape))
            return 2 * x

        for _ in range(3):
            for rows in (2, 3, 4, 5):
                for device in devices:
                    with tf.device(device):
                        assert step(tf.ones([rows])).shape == [rows]
        return shapes

    assert traced(lambda step: executed(AlikeCalls(step))) == traced(lambda step: step) == [(2,), (None,)]


def test_functions_that_are_to_run_eagerly_do() -> None:
    alike = executed(AlikeCalls(tf.function(lambda x: tf.constant(tf.executing_eagerly() and x is not None))))
    assert [bool(alike(ONES)) for _ in range(2)] == [False, False]

    tf.config.run_functions_eagerly(True)
    try:
        assert bool(alike(ONES))
    finally:
        tf.config.run_functions_eagerly(False)
