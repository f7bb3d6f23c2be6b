"""The terms of a loss in a `tf.compat.v1` graph: found in the user's graph, differentiated in its copy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.schema import COSINES_IN_ROW, GRADIENT_STATISTICS
from tb_gradflow.trace.graph.flat_ops import consumers
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import TermAnswer, TermAnswers
from tb_gradflow.trace.graph.reach import influenced_by
from tb_gradflow.trace.graph_v1.gradients_v1 import Built, statistics_of
from tb_gradflow.trace.graph_v1.graph_copy import twin_of
from tb_gradflow.trace.numerics.fusion import is_constant
from tb_gradflow.trace.numerics.statistics_table import Block
from tb_gradflow.trace.terms.named import Term, terms_of
from tb_gradflow.trace.terms.summands import Ground, summands_of

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class BuiltTerm:
    """One term in the copy of a graph.

    Attributes:
        term: The term, of tensors of the user's graph.
        value: Its contribution to the loss.
        weight: Its contribution if it were one throughout.
        gradients: By index of the variable that it reaches.
    """

    term: Term
    value: Any
    weight: Any
    gradients: Mapping[int, Any]


def built_terms(loss: Any, flattener: Flattener, sources: Mapping[int, Any], built: Built) -> list[BuiltTerm]:
    """Empty if the loss is not a sum of several terms."""
    ops = flattener.ops
    moved = influenced_by(ops, consumers(ops), [number for number, op in enumerate(ops) if op.reads is not None])

    def moves(tensor: Any) -> bool:
        ref = flattener.ref(tensor)
        return ref is not None and ref.op in moved

    def actual(tensor: Any) -> Any:
        return twin_of(tensor, built.twin)

    with built.twin.as_default():
        ground = Ground(actual, moves, lambda tensor: is_constant(tensor.op), lambda _: False)
        terms = terms_of(summands_of([(loss, tf.ones_like(built.loss))], ground), lambda _: "")
        asked = [actual(source) for source in sources.values()]
        return [_built(term, list(sources), asked, actual) for term in terms] if len(terms) > 1 else []


def _built(term: Term, indices: Sequence[int], asked: Sequence[Any], actual: Any) -> BuiltTerm:
    moving = [each for each in term.summands if each.moves]
    found: Sequence[Any] = [None] * len(asked)
    if moving:
        ends, weights = [actual(each.tensor) for each in moving], [each.weight for each in moving]
        found = tf.compat.v1.gradients(ends, asked, grad_ys=weights, name="gradients_gradflow_term")
    values = [tf.reduce_sum(tf.cast(actual(each.tensor) * each.weight, tf.float32)) for each in term.summands]
    weights = [tf.reduce_sum(tf.cast(tf.abs(each.weight), tf.float32)) for each in term.summands]
    gradients = zip(indices, found, strict=True)
    return BuiltTerm(
        term,
        tf.add_n(values),
        tf.add_n(weights),
        {index: tf.convert_to_tensor(gradient) for index, gradient in gradients if gradient is not None},
    )


def fetches_of(terms: Sequence[BuiltTerm]) -> dict[str, Any]:
    """The tensors of the copy whose values `rows_of` needs."""
    fetched: dict[str, Any] = {}
    for number, each in enumerate(terms):
        fetched[f"term/{number}"] = (each.value, each.weight)
        fetched.update({f"term/{number}/{index}": gradient for index, gradient in each.gradients.items()})
    return fetched


def answers_of(terms: Sequence[BuiltTerm], flattener: Flattener, rows: Block) -> TermAnswers:
    """Adds a row to `rows` for each of `rows_of`, in their order."""
    found = TermAnswers()
    for each in terms:
        summands = each.term.summands
        ref = flattener.ref(summands[0].tensor) if len(summands) == 1 else None
        answer = TermAnswer(each.term.name, each.term.kind, ref, each.term.frames, each.term.moves, rows.add())
        answer.gradients = {index: rows.add() for index in each.gradients}
        found.terms.append(answer)
    for index, reaching in _shared(terms):
        found.cosines[index], *_ = [rows.add() for _ in range(_cosine_rows(len(reaching)))]
    return found


def rows_of(terms: Sequence[BuiltTerm], fetched: Mapping[str, Any]) -> list[list[float]]:
    """Rows of statistics: for each term its value and its gradients, then the cosines."""
    rows: list[list[float]] = []
    for number, each in enumerate(terms):
        value, weight = fetched[f"term/{number}"]
        rows.append([float(value), float(weight), *[0.0] * (len(GRADIENT_STATISTICS) - 2)])
        rows += [statistics_of(fetched[f"term/{number}/{index}"]) for index in each.gradients]
    for index, reaching in _shared(terms):
        gradients = [np.ravel(fetched[f"term/{number}/{index}"]).astype(np.float64) for number in reaching]
        cosines = [_cosine(one, other) for one, other in itertools.combinations(gradients, 2)]
        cosines += [float("nan")] * (-len(cosines) % COSINES_IN_ROW)
        rows += [cosines[first : first + COSINES_IN_ROW] for first in range(0, len(cosines), COSINES_IN_ROW)]
    return rows


def _shared(terms: Sequence[BuiltTerm]) -> Iterator[tuple[int, list[int]]]:
    """The variables that several terms reach, with the indices of these terms."""
    for index in sorted({index for each in terms for index in each.gradients}):
        reaching = [number for number, each in enumerate(terms) if index in each.gradients]
        if len(reaching) > 1:
            yield index, reaching


def _cosine_rows(reaching: int) -> int:
    return -(-(reaching * (reaching - 1) // 2) // COSINES_IN_ROW)


def _cosine(one: Array, other: Array) -> float:
    """The cosine of two gradients; NaN if one of them is zero or not finite."""
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if 0 < size < np.inf else float("nan")
