"""The gradient of each term, and the angles between them, as rows of statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import COSINES_IN_ROW
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph.gradient_call import TermAnswer, TermAnswers
from tb_gradflow.trace.numerics.fusion import behind, may_be_merged, recomputed, seen_apart
from tb_gradflow.trace.numerics.statistics import GRADIENT_COLUMNS, gradient_cosine
from tb_gradflow.trace.numerics.statistics_table import Block
from tb_gradflow.trace.terms.linear import Actual
from tb_gradflow.trace.terms.named import Term
from tb_gradflow.trace.terms.summands import Summand
from tb_gradflow.trace.tf_internals.kept_tapes import Asked


def measure(
    terms: Sequence[Term],
    asked: Asked,
    sources: Mapping[int, int],
    count: int,
    outputs: Mapping[Ref, Any],
    actual: Actual,
    scale: Any,
    ref_of: Callable[[Any], Ref | None],
    rows: Block,
    *,
    exact: bool,
) -> TermAnswers:
    """The facts about the terms.

    Args:
        terms: Two or more.
        asked: The request for the gradient of their sum.
        sources: The position among the sources by index of the variable.
        count: Number of sources.
        outputs: The outputs of layers for which the gradient of each term is measured too.
        actual: See `linear`.
        scale: The factor by which the loss was multiplied; None if it was not.
        ref_of: The output of a flat op that a tensor of the graph is.
        rows: Are given those of the terms.
        exact: Whether the step must round as it does without this: see `fusion`.
    """
    found = TermAnswers()
    if exact:
        terms = [_apart(term) for term in terms]
    values = [rows.add(_value_row(term, actual, scale, exact=exact)) for term in terms]
    gradients = [_gradients(term, asked, count, list(outputs.values()), actual) for term in terms]
    for term, value, arrived in zip(terms, values, gradients, strict=True):
        ref = _ref_of(term.summands[0], ref_of) if len(term.summands) == 1 else None
        answer = TermAnswer(term.name, term.kind, ref, term.frames, term.moves, value)
        for variable, place in sources.items():
            if arrived[place] is not None:
                answer.gradients[variable] = rows.measure(arrived[place], scale)
        for ref, gradient in zip(outputs, arrived[count:], strict=True):
            answer.tensors[ref] = None if gradient is None else rows.measure(gradient, scale)
        found.terms.append(answer)
    for variable, place in sources.items():
        reaching = [arrived[place] for arrived in gradients if arrived[place] is not None]
        if len(reaching) > 1:
            found.cosines[variable], *_ = [rows.add(row) for row in _cosine_rows(reaching)]
    return found


def _ref_of(summand: Summand, ref_of: Callable[[Any], Ref | None]) -> Ref | None:
    return ref_of(summand.tensor) if summand.inside is None else summand.inside.ref


def _apart(term: Term) -> Term:
    """The term with weights that TensorFlow's graph optimizer does not recognise as equal to what the step itself
    computes.
    """
    summands = [replace(each, weight=behind(each.weight)) for each in term.summands]
    return replace(term, summands=summands)


def _gradients(term: Term, asked: Asked, count: int, outputs: Sequence[Any], actual: Actual) -> list[Any]:
    moving = [each for each in term.summands if each.moves]
    if not moving:
        return [None] * (count + len(outputs))
    # Parts of a gradient that depend only on forward values, such as 2 * x, would be deduplicated with the step's own,
    # which could then no longer be merged with the op that multiplies it. Ops with a control dependency are not equal
    # to ops without one.
    with tf.control_dependencies([each.weight for each in moving]):
        pairs = [
            pair
            for each in moving
            for pair in (
                [(actual(each.tensor), each.weight)]
                if each.inside is None
                else zip(each.inside.targets, each.inside.gradients, strict=True)
            )
        ]
        return asked.again([target for target, _ in pairs], [weight for _, weight in pairs], count, outputs)


def _value_row(term: Term, actual: Actual, scale: Any, *, exact: bool) -> Any:
    """A term's contribution to the loss, and its contribution if it were one throughout."""
    parts, weights = [], []
    for each in term.summands:
        given = _value_of(each, actual, exact=exact)
        weight = tf.cast(each.weight, tf.float32)
        weights.append(tf.reduce_sum(tf.abs(weight)))
        # A NaN in the term is a NaN in the loss, whatever its weight.
        parts.append(float("nan") if given is None else tf.reduce_sum(tf.cast(given, tf.float32) * weight))
    row = tf.stack([tf.add_n(parts), tf.add_n(weights)])
    row = row if scale is None else row / tf.cast(scale, tf.float32)
    return tf.concat([row, tf.zeros([GRADIENT_COLUMNS - 2])], 0)


def _value_of(summand: Summand, actual: Actual, *, exact: bool) -> Any:
    if summand.inside is not None:
        return summand.inside.value
    return _seen(summand.tensor) if exact else actual(summand.tensor)


def _seen(tensor: Any) -> Any:
    """The value of a term, without reading it directly if it may be merged with its consumers; None if that is not
    possible.
    """
    if tensor.shape.rank == 0:
        return recomputed(tensor)
    return seen_apart(tensor) if may_be_merged(tensor) else tensor


def _cosine_rows(gradients: Sequence[Any]) -> list[Any]:
    """The cosine of each pair, in the order (0, 1), (0, 2), …, (1, 2), …, with as many in each row as it has
    columns."""
    angles = [gradient_cosine(one, other) for place, one in enumerate(gradients) for other in gradients[place + 1 :]]
    angles += [tf.constant(float("nan"))] * (-len(angles) % COSINES_IN_ROW)
    return [tf.stack(angles[first : first + COSINES_IN_ROW]) for first in range(0, len(angles), COSINES_IN_ROW)]
