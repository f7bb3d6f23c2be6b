"""Optimizers for a while with more variables than they were built for: an edit may let a step train one that had no
gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_gradflow.trace.tf_internals.patching import replaced

_CHECK = "_check_variables_are_known"

Unknown = list[tuple[Any, Sequence[Any]]]
"""Optimizers, each with variables of which it does not know all."""


@contextlib.contextmanager
def unknown_noted() -> Iterator[Unknown]:
    """While the context is open, each optimizer that refuses variables because it does not know them is added to a
    list, with these."""
    found: Unknown = []

    def noting(original: Callable[..., None]) -> Callable[..., None]:
        def check(self: Any, variables: Sequence[Any]) -> None:
            try:
                original(self, variables)
            except ValueError:
                found.append((self, list(variables)))
                raise

        return check

    with contextlib.ExitStack() as undo:
        for owner in (each for each in keras.optimizers.Optimizer.__mro__ if _CHECK in vars(each)):
            replaced(undo, owner, _CHECK, noting, raises=True)
        yield found


@contextlib.contextmanager
def extended(unknown: Unknown) -> Iterator[list[Any]]:
    """While the context is open, these optimizers also know these variables, and their momentum begins anew. Yields
    what must live as long as a function that was traced in the meantime."""
    by_id = {id(optimizer): optimizer for optimizer, _ in unknown}
    lent = []
    with contextlib.ExitStack() as undo:
        for optimizer in by_id.values():
            known = {optimizer._var_key(each): each for each in optimizer._trainable_variables}
            for variables in (variables for other, variables in unknown if other is optimizer):
                known.update((optimizer._var_key(each), each) for each in variables)
            with tf.init_scope():
                new = type(optimizer).from_config(optimizer.get_config())
                new.build(list(known.values()))
                new.iterations.assign(optimizer.iterations)
            own = dict(vars(optimizer))
            undo.callback(_put, optimizer, own)
            _put(optimizer, {**own, **vars(new)})
            lent.append(new)
        yield lent


def _put(optimizer: Any, attributes: dict[str, Any]) -> None:
    vars(optimizer).clear()
    vars(optimizer).update(attributes)
