"""A step of a batch, compiled and called as Keras compiles and calls it, so that the optimizer names its ops alike.

The optimizer puts the function of the step in the place of its call, and sorts the terms of sums by names that then
contain the name of the call (see `op_names`). The names of what a loop returns end in numbers, `exit/_99` and
`exit/_100`, that count on from the arguments and results of the function: a step with more results would have `_103`
and `_104`, which are in another order. So all that the recorder measures leaves the function inside one of the user's
results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

_DRAWN = "IteratorGetNext"


class _Together(NamedTuple):
    """A result of the user's step, and what the recorder returns in addition."""

    result: Any
    more: Any


def called_as_by_keras(step: Callable[[Any], Any], *, is_paired: bool) -> Any:
    """A `tf.function` of a batch that calls a `tf.function` of `step`. `is_paired` means that this returns the user's
    results and something else."""

    # Not a lambda: TensorFlow leaves the user's lines out of an error in a function named `<lambda>`.
    def one_step_on_data(batch: Any) -> Any:
        return _packed(*step(batch)) if is_paired else step(batch)

    inner = tf.function(tf.autograph.experimental.do_not_convert(one_step_on_data), reduce_retracing=True)

    def on_batch(batch: Any) -> Any:
        parts = tf.nest.flatten(batch, expand_composites=True)
        drawn = [_named_as_drawn(part, number) for number, part in enumerate(parts)]
        results = inner(tf.nest.pack_sequence_as(batch, drawn, expand_composites=True))
        return _unpacked(results) if is_paired else results

    return tf.function(tf.autograph.experimental.do_not_convert(on_batch), reduce_retracing=True)


def _named_as_drawn(part: Any, number: int) -> Any:
    """A tensor of a batch, from an op that is named like the one that draws it, and that the optimizer keeps. Names of
    arguments are in lower case, and come after those of all calls.
    """
    if not isinstance(part, tf.Tensor) or not (part.dtype.is_floating or part.dtype.is_complex):
        return part
    name = f"{_DRAWN}_{number}" if number else _DRAWN
    return tf.raw_ops.PlaceholderWithDefault(input=part, shape=part.shape, name=name)


def _packed(results: Any, more: Any) -> Any:
    """The user's results, the last of which contains `more`, if there is a tensor among them; else both."""
    flat = tf.nest.flatten(results)
    place = max((number for number, each in enumerate(flat) if isinstance(each, tf.Tensor)), default=None)
    if place is None or not all(isinstance(each, tf.Tensor) for each in tf.nest.flatten(more)):
        return results, more
    flat[place] = tf.experimental.Optional.from_value(_Together(flat[place], more))
    return tf.nest.pack_sequence_as(results, flat)


def _unpacked(returned: Any) -> tuple[Any, Any]:
    flat = tf.nest.flatten(returned)
    for place, each in enumerate(flat):
        if isinstance(each, tf.experimental.Optional) and isinstance(each.element_spec, _Together):
            flat[place], more = each.get_value()
            return tf.nest.pack_sequence_as(returned, flat), more
    results, more = returned
    return results, more
