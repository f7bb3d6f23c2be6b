"""Whether a fit continues with the functions that the previous fit compiled, as Keras does unless `compile` is called
in between.

Weights that were frozen or unfrozen since then, and changed Python values, have no effect in such a fit. So the
recorder must not trace the step again either: the training would differ from one without it. If the functions were
compiled by another recorder, or by none, they are traced again, and the fit is not recorded if flags were changed.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow.python.framework import auto_control_deps_utils, dtypes

from tb_gradflow.trace.fidelity.warning import warn
from tb_gradflow.trace.fit.keras3 import Fitting
from tb_gradflow.trace.fit.train_function import AsCompiled, keras_own, put, traced
from tb_gradflow.trace.graph.variables import has_weights, raw_variable

_compiled_for: MutableMapping[Any, dict[int, bool]] = WeakKeyDictionary()
"""By training function: whether each weight was trainable when a recorder of this process first recorded the function,
or at the end of the fit in which the weight was created.
"""


class LastFit:
    """The training function of the last recorded fit."""

    def __init__(self) -> None:
        self._function: Any = None
        self._kind: tuple[Any, ...] = ()

    def begins(self, model: Any, fitted: Fitting) -> bool:
        """Called when a fit begins whose functions this recorder compiles. Returns False, after a warning, if they
        would train differently from the model's own.
        """
        function = keras_own(model.train_function)
        if function is None or fitted.is_eager:
            return True
        changed = _changed(model)
        if changed:
            warn(f"{_without_effect(changed, model)} This fit is not recorded.")
            return False
        self._function, self._kind = function, _kind(fitted)
        _learn(function, model)
        return True

    def goes_on(self, model: Any, fitted: Fitting) -> bool:
        """Whether the fit that begins runs the same function; if so, warns about flags that have no effect on it."""
        function = keras_own(model.train_function)
        if function is None or function is not self._function or fitted.is_eager:
            return False
        if _kind(fitted) != self._kind:
            return False
        changed = _changed(model)
        if changed:
            warn(_without_effect(changed, model))
        return True

    def ends(self, model: Any, fitted: Fitting) -> None:
        """Called when the fit has ended."""
        function = model.train_function
        if keras_own(function) is not self._function:
            return
        _learn(self._function, model)
        if isinstance(function, AsCompiled) and function.has_run:
            put(model, function.function)
        elif isinstance(function, AsCompiled):
            fitted.freeze_as_now(function)


def _kind(fitted: Fitting) -> tuple[Any, ...]:
    return type(fitted), fitted.shows_graph


def _trainable(model: Any) -> frozenset[int]:
    return frozenset(map(id, model.trainable_weights if has_weights(model) else ()))


def _weights(model: Any) -> Sequence[Any]:
    listed: Sequence[Any] = model.weights if has_weights(model) else ()
    return listed


def _learn(function: Any, model: Any) -> None:
    """The current flags of weights that did not exist before: a first step creates some."""
    trainable = _trainable(model)
    known = _compiled_for.setdefault(function, {})
    for each in _weights(model):
        known.setdefault(id(each), id(each) in trainable)


def _changed(model: Any) -> list[Any]:
    """The weights that were frozen or unfrozen since the model's training function was compiled."""
    trainable = _trainable(model)
    function = keras_own(model.train_function)
    before = _compiled_for.get(function)
    if before is not None:
        return [
            each for each in _weights(model) if before.get(id(each), id(each) in trainable) != (id(each) in trainable)
        ]
    written = {handle for concrete in traced(function) for handle in _written(concrete.graph)}
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
