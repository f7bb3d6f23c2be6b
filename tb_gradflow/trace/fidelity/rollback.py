"""Restores a program to the state before a step."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.distribute.values import DistributedVariable
from tensorflow.python.eager import context
from tensorflow.python.ops import stateful_random_ops

from tb_gradflow.trace.fidelity.object_graph import Bindings
from tb_gradflow.trace.graph.variables import raw_variable
from tb_gradflow.trace.protection.beside import surely


@contextlib.contextmanager
def undone(state: Sequence[Any], roots: Sequence[Any]) -> Iterator[Bindings]:
    """Restores everything that a step changes: the variables of `state` and those that can be reached from `roots`, the
    places that hold them, and the generators of Python, NumPy and TensorFlow.
    """
    bindings = Bindings(roots)
    before = dict(_values([*state, *bindings.variables, *_generator()]))
    python, numpy, eager = random.getstate(), np.random.get_state(), _eager_seeds()
    try:
        yield bindings
    finally:
        try:
            surely(bindings.restore)
        finally:
            for raw, value in before.values():
                raw.assign(value)
            random.setstate(python)
            np.random.set_state(numpy)
            surely(_restore_eager_seeds, eager)


def _values(variables: Sequence[Any]) -> Iterator[tuple[int, tuple[Any, Any]]]:
    for raw in map(raw_variable, variables):
        # A Keras variable that is not built yet has no value to keep, and neither has an uninitialized one.
        if isinstance(raw, tf.Variable):
            # The copies of several replicas may differ, for example for a moving average.
            for own in raw.values if isinstance(raw, DistributedVariable) else (raw,):
                with contextlib.suppress(tf.errors.OpError):
                    value = own.numpy()
                    # A variable that was created by an unfinished trace has no value, whatever it returns.
                    if own.shape.is_compatible_with(value.shape):
                        yield id(own), (own, value)


def _generator() -> list[tf.Variable]:
    """The state of `tf.random.get_global_generator()`, if the program has one."""
    generator = stateful_random_ops.global_generator
    return [] if generator is None else [generator.state]


def _eager_seeds() -> Any:
    """The source of seeds for eager ops after `tf.random.set_seed`; None without it."""
    generator = getattr(context.context(), "_rng", None)
    return None if generator is None else (generator, generator.getstate())


def _restore_eager_seeds(seeds: Any) -> None:
    if seeds is not None and seeds[0].getstate() != seeds[1]:
        seeds[0].setstate(seeds[1])
        # A cached kernel continues from its position when the same seed comes again: `set_seed` clears the cache, and
        # so does this.
        pywrap_tfe.TFE_ContextClearCaches(context.context()._context_handle)
