"""Restores a program to the state before a step."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.distribute.values import DistributedVariable
from tensorflow.python.eager import context
from tensorflow.python.ops import stateful_random_ops

from tb_gradflow.trace.fidelity.generators import put_state, seed, state_of
from tb_gradflow.trace.fidelity.object_graph import Bindings
from tb_gradflow.trace.graph.variables import raw_variable
from tb_gradflow.trace.protection.beside import surely


class _OfThread(threading.local):
    drawn: int | None = None


_of_thread = _OfThread()


@contextlib.contextmanager
def drawing(number: int) -> Iterator[None]:
    """While the context is open, each step that is undone draws the same random numbers, as far as its generators are
    known: with the number 0 those that it draws next, and other ones with each other number."""
    before, _of_thread.drawn = _of_thread.drawn, number
    try:
        yield
    finally:
        _of_thread.drawn = before


@contextlib.contextmanager
def undone(state: Sequence[Any], roots: Sequence[Any]) -> Iterator[Bindings]:
    """Restores everything that a step changes: the variables of `state` and those that can be reached from `roots`, the
    places that hold them, the generators that are there, and those of Python, NumPy and TensorFlow.
    """
    bindings = Bindings(roots)
    before = dict(_values([*state, *bindings.variables, *_generator()]))
    python, numpy, eager = random.getstate(), np.random.get_state(), _eager_seeds()
    states = [(each, state_of(each)) for each in bindings.generators]
    seeds = context.context()._seed, getattr(context.context(), "_rng", None)
    try:
        if _of_thread.drawn is not None:
            _draw(_of_thread.drawn, bindings)
        yield bindings
    finally:
        try:
            surely(bindings.restore)
        finally:
            for raw, value in before.values():
                raw.assign(value)
            random.setstate(python)
            np.random.set_state(numpy)
            for generator, state in states:
                put_state(generator, state)
            context.context()._seed, context.context()._rng = seeds
            surely(_restore_eager_seeds, eager)


_SEED = 20_170_711


def _draw(number: int, bindings: Bindings) -> None:
    """Chooses the random numbers of a step."""
    if number or context.context()._seed is None:
        # Ops that a program creates without a seed draw other numbers in each function that is compiled.
        context.context()._seed = _SEED + number
        context.context()._rng = random.Random(_SEED + number)
    if number:
        random.seed(number)
        np.random.seed(number)
        for generator in bindings.generators:
            seed(generator, number)
        for variable in map(raw_variable, bindings.variables):
            if isinstance(variable, tf.Variable) and _SEEDS_OF_KERAS in variable.name:
                variable.assign_add(tf.cast(tf.fill(variable.shape, number), variable.dtype))


_SEEDS_OF_KERAS = "seed_generator_state"


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
