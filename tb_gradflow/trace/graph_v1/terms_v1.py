"""The terms of a loss in a `tf.compat.v1` graph: found in the user's graph, measured in its copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import TermAnswers
from tb_gradflow.trace.graph_v1.gradients_v1 import Built
from tb_gradflow.trace.graph_v1.graph_copy import twin_of
from tb_gradflow.trace.numerics.fusion import is_constant
from tb_gradflow.trace.numerics.statistics_table import Block
from tb_gradflow.trace.terms.measured import measure
from tb_gradflow.trace.terms.named import terms_of
from tb_gradflow.trace.terms.summands import Ground, summands_of
from tb_gradflow.trace.tf_internals.kept_tapes import Asked


class _AskedInGraph(Asked):
    """The same request for `tf.gradients`."""

    def __init__(self, sources: Sequence[Any]) -> None:
        super().__init__()
        self._sources = sources

    def again(
        self, targets: Sequence[Any], output_gradients: Sequence[Any], count: int, more: Sequence[Any] = ()
    ) -> list[Any]:
        sources = [*self._sources[:count], *more]
        name = "gradients_gradflow_term"
        return list(tf.compat.v1.gradients(targets, sources, grad_ys=output_gradients, name=name))


def measured_terms(
    loss: Any, flattener: Flattener, moved: Set[int], sources: Mapping[int, Any], built: Built, rows: Block
) -> TermAnswers:
    """The terms of the loss, whose rows in the copy are added to `rows`; none if it is not a sum of several. `moved`
    are the flat ops that depend on a variable.
    """

    def moves(tensor: Any) -> bool:
        ref = flattener.ref(tensor)
        return ref is not None and ref.op in moved

    def actual(tensor: Any) -> Any:
        return twin_of(tensor, built.twin)

    with built.twin.as_default():
        ground = Ground(actual, moves, lambda tensor: is_constant(tensor.op), lambda _: False)
        terms = terms_of(summands_of([(loss, tf.ones_like(built.loss))], ground), lambda _: "")
        if len(terms) < 2:
            return TermAnswers()
        asked = _AskedInGraph([actual(source) for source in sources.values()])
        places = {index: place for place, index in enumerate(sources)}
        found = measure(terms, asked, places, len(places), {}, actual, None, flattener.ref, rows, exact=False)
        rows.stack()
    return found
