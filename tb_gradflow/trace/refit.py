"""Whether a fit goes on with what the one before has compiled, as Keras does where nobody calls `compile` in between.

What was frozen or thawed since then, or changed in Python, plays no part in such a fit. So the recorder must not trace
the step anew either: it would train something else than the training without it. A fit whose functions another recorder
has compiled, or none, is traced anew, and left alone if flags were changed.

While a recorder runs steps of its own, Keras's is not traced. A later fit that runs it traces it with the flags that it
would have been traced with.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import auto_control_deps_utils, dtypes

from tb_gradflow.trace.fitting import Fitting, is_legacy
from tb_gradflow.trace.recorder import warn
from tb_gradflow.trace.variables import raw_variable

_compiled_for: MutableMapping[Any, frozenset[int]] = WeakKeyDictionary()
"""By training function: what was to be trained when a recorder of this process first recorded it."""


class LastFit:
    """The training function of the last fit that was recorded."""

    def __init__(self) -> None:
        self._function: Any = None
        self._kind: tuple[Any, ...] = ()

    def begins(self, model: Any, fitted: Fitting) -> bool:
        """A fit begins whose functions this recorder compiles; false if they would train something else than the
        model's own, which is told."""
        function = _own(model.train_function)
        if function is None or fitted.is_eager:
            return True
        changed = _changed(model)
        if changed:
            warn(f"{_without_effect(changed, model)} This fit is not recorded.")
            return False
        _compiled_for.setdefault(function, _trainable(model))
        self._function, self._kind = function, _kind(fitted)
        return True

    def goes_on(self, model: Any, fitted: Fitting) -> bool:
        """Whether the fit that begins runs the same function; then tells of flags that have no effect on it."""
        function = _own(model.train_function)
        if function is None or function is not self._function or fitted.is_eager:
            return False
        if _kind(fitted) != self._kind:
            return False
        changed = _changed(model)
        if changed:
            warn(_without_effect(changed, model))
        return True

    def ends(self, model: Any, fitted: Fitting) -> None:
        """The fit has ended."""
        function = model.train_function
        if function is self._function and not fitted.is_eager and not is_legacy(model) and not any(_traced(function)):
            vars(model)["train_function"] = _AsCompiled(function, model)


class _AsCompiled:
    """A training function of Keras 3 that was never traced; when that happens, it is with the flags of now.

    Keras 2 itself puts the flags back while it trains.
    """

    def __init__(self, function: Any, model: Any) -> None:
        self.function = function
        owners = (*model._flatten_layers(), *model.variables)
        self._flags = [(each, bool(vars(each)["_trainable"])) for each in owners if "_trainable" in vars(each)]

    def __call__(self, iterator: Any) -> Any:
        now = [(each, bool(vars(each)["_trainable"])) for each, _ in self._flags]
        _set(self._flags)
        try:
            return self.function(iterator)
        finally:
            _set(now)
            self._flags = []


def _set(flags: Sequence[tuple[Any, bool]]) -> None:
    # Past the setter of a layer, which sets those of all its weights.
    for each, flag in flags:
        vars(each)["_trainable"] = flag


def _own(function: Any) -> Any:
    return function.function if isinstance(function, _AsCompiled) else function


def _kind(fitted: Fitting) -> tuple[Any, ...]:
    return type(fitted), fitted.shows_graph


def _trainable(model: Any) -> frozenset[int]:
    return frozenset(map(id, model.trainable_weights))


def _changed(model: Any) -> list[Any]:
    """The weights that were frozen or thawed since the model's training function was compiled."""
    trainable = _trainable(model)
    function = _own(model.train_function)
    before = _compiled_for.get(function)
    if before is not None:
        return [each for each in model.weights if id(each) in trainable ^ before]
    written = {handle for concrete in _traced(function) for handle in _written(concrete.graph)}
    optimized = {id(each) for each in getattr(model.optimizer, "_trainable_variables", ())}
    return [
        each
        for each in model.weights
        if id(each) in optimized and id(each) not in trainable and id(raw_variable(each).handle) in written
    ]


def _traced(function: Any) -> Iterator[Any]:
    """What TensorFlow has traced a training function to."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for each in (function, *cells):
        if isinstance(each, polymorphic_function.Function):
            yield from each._list_all_concrete_functions()


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
        f"tb_gradflow: `{first}`{more} became {became} after the model was compiled, and that has no effect: Keras "
        "goes on with the training step of the last `fit`. Call `model.compile(...)` again in front of this `fit`."
    )
