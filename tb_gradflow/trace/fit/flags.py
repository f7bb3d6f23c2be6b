"""Layers that were frozen or unfrozen since a model was compiled. Keras goes on with the step that it has compiled, in
which that has no effect, and says nothing."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow.python.framework import auto_control_deps_utils, dtypes

from tb_gradflow.trace.fit.train_function import traced
from tb_gradflow.trace.graph.variables import has_weights, raw_variable
from tb_gradflow.trace.protection.warning import warn

_compiled_for: MutableMapping[Any, dict[int, bool]] = WeakKeyDictionary()
"""By training function: whether each weight was trainable when a recorder of this process first recorded the function,
or at the end of the fit in which the weight was created.
"""


class FlagsWithoutEffect:
    """Warns about them."""

    def begins(self, model: Any, *, is_eager: bool) -> None:
        """Called when a fit begins."""
        function = model.train_function
        if function is None or is_eager:
            return
        changed = _changed(model)
        if changed:
            warn(_without_effect(changed, model))
        _learn(function, model)

    def ends(self, model: Any) -> None:
        """Called when it has ended: a first step creates some weights."""
        if model.train_function in _compiled_for:
            _learn(model.train_function, model)


def _trainable(model: Any) -> frozenset[int]:
    return frozenset(map(id, model.trainable_weights if has_weights(model) else ()))


def _weights(model: Any) -> Sequence[Any]:
    listed: Sequence[Any] = model.weights if has_weights(model) else ()
    return listed


def _learn(function: Any, model: Any) -> None:
    """The current flags of weights that were not known."""
    trainable = _trainable(model)
    known = _compiled_for.setdefault(function, {})
    for each in _weights(model):
        known.setdefault(id(each), id(each) in trainable)


def _changed(model: Any) -> list[Any]:
    """The weights that were frozen or unfrozen since the model's training function was compiled."""
    trainable = _trainable(model)
    before = _compiled_for.get(model.train_function)
    if before is not None:
        return [
            each for each in _weights(model) if before.get(id(each), id(each) in trainable) != (id(each) in trainable)
        ]
    written = {handle for concrete in traced(model.train_function) for handle in _written(concrete.graph)}
    optimized = {id(each) for each in getattr(model.optimizer, "_trainable_variables", ())}
    return [
        each
        for each in _weights(model)
        if id(each) in optimized and id(each) not in trainable and id(raw_variable(each).handle) in written
    ]


def _written(graph: Any) -> Iterator[int]:
    """The ids of the handles of the variables that a graph changes."""
    only_read = set(auto_control_deps_utils.get_read_only_resource_input_indices_graph(graph))
    outside = {id(tensor): outer for outer, tensor in graph.captures}
    for index, tensor in enumerate(graph.inputs):
        if tensor.dtype == dtypes.resource and index not in only_read and id(tensor) in outside:
            yield id(outside[id(tensor)])


def _without_effect(changed: Sequence[Any], model: Any) -> str:
    thawed = id(changed[0]) in _trainable(model)
    first = getattr(changed[0], "path", changed[0].name)
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    became = "trainable" if thawed else "frozen"
    return (
        f"tb_gradflow: `{first}`{more} became {became} after the model was compiled. This has no effect: Keras "
        "keeps using the training step of the last `fit`. Call `model.compile(...)` again before this `fit`."
    )
