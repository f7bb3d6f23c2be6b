"""The variables of a step: which there are, their names, and which handle belongs to which."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.values import DistributedVariable
from tensorflow.python.framework import ops

from tb_gradflow.record import schema
from tb_gradflow.trace.graph.differentiable import shape_of
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.source.variable_names import is_unnamed, names_here, names_in
from tb_gradflow.trace.tf_internals.tapes import flat_sources


@dataclass(frozen=True, slots=True)
class Owned:
    """A variable with an owner, such as a model or an optimizer.

    Attributes:
        variable: The `tf.Variable`, or a `GivenTensor`.
        name: Its name for the owner.
        trainable: Whether its owner intends it to be trained.
        tracked: Whether the model lists it.
        rebound: The attribute that held it and holds a tensor now; empty if there is none.
        elsewhere: The method of the model that uses it, if no training step does; empty if there is none.
        held: The frozen container of its layer, which is not frozen; empty if there is none.
    """

    variable: Any
    name: str
    trainable: bool
    tracked: bool
    rebound: str = ""
    elsewhere: str = ""
    held: str = ""

    @property
    def source(self) -> Any:
        """A source of a gradient request."""
        return self.variable.tensor if isinstance(self.variable, GivenTensor) else self.variable


@dataclass(frozen=True, slots=True)
class GivenTensor:
    """An eager tensor for which a gradient is requested, with the interface of a variable.

    Attributes:
        tensor: The tensor.
    """

    tensor: Any

    @property
    def handle(self) -> Any:
        return self.tensor

    @property
    def shape(self) -> Any:
        return self.tensor.shape

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype

    def read_value(self) -> Any:
        return self.tensor

    def numpy(self) -> Any:
        return self.tensor.numpy()


class MadeTensor(GivenTensor):
    """A tensor computed in the step, for which a gradient is requested."""


class Variables:
    """Variables by the handle that ops use. Grows when a step reads others.

    Args:
        owned: Returns the variables that the owner has by now: a model may be built by its first step.
        ignored: Returns variables that do not belong to the owner: an optimizer's slots, a metric's totals.
        meets: Whether a variable that a step reads, and that the owner does not list, counts as one of its variables.
        called: Finds the names that the user's code has for some of them.
    """

    def __init__(
        self,
        owned: Callable[[], Iterable[Owned]] = tuple,
        ignored: Callable[[], Iterable[Any]] = tuple,
        meets: Callable[[Any], bool] = lambda variable: True,
        called: Callable[[Iterable[Any]], Mapping[int, str]] = names_here,
    ) -> None:
        self._owner = (owned, ignored)
        self._meets = meets
        self._called_here = called
        self._began = ops.uid()
        self._owned: list[Owned] = []
        self._by_handle: dict[object, int] = {}
        self._ignored: set[object] = set()
        self._unlisted: dict[object, int] = {}
        self._captures: dict[int, dict[int, Any]] = {}
        self._layers: dict[int, Any] = {}
        self._written: dict[int, str] = {}
        self._ask_owner()

    def __len__(self) -> int:
        return len(self._owned)

    def __getitem__(self, index: int) -> Owned:
        return self._owned[index]

    def __iter__(self) -> Any:
        return iter(self._owned)

    def add(self, item: Owned) -> int:
        """The index of a variable, which is added if it is new."""
        key = _key(item.variable)
        if key not in self._by_handle:
            self._by_handle[key] = len(self._owned)
            self._owned.append(item)
        return self._by_handle[key]

    def index_of(self, variable: Any) -> int:
        """The index of a `tf.Variable` or Keras variable, which is added under its own name if it is new."""
        raw = local(variable)
        path = getattr(variable, "path", None)
        found = self._by_handle.get(_key(raw))
        if found is None:
            return self.add(Owned(raw, path or raw.name.removesuffix(":0"), bool(raw.trainable), tracked=False))
        if path and not self._owned[found].tracked:
            # It was first met without its layer's name.
            self._owned[found] = replace(self._owned[found], name=path)
        return found

    def add_made(self, tensor: Any, name: str, rebound: str = "") -> int:
        """The index of a tensor of the step for which a gradient is requested."""
        return self.add(Owned(MadeTensor(tensor), name, trainable=True, tracked=False, rebound=rebound))

    def forget_made(self) -> None:
        """The step begins anew: tensors that it has made so far are none of its own."""
        self._owned = [each for each in self._owned if not isinstance(each.variable, MadeTensor)]
        self._by_handle = {_key(each.variable): number for number, each in enumerate(self._owned)}

    def index_of_source(self, source: Any) -> int | None:
        """The index of something for which a gradient is requested; None for tensors that are not among the
        variables.
        """
        if isinstance(raw_variable(source), tf.Variable):
            return self.index_of(source)
        return self._by_handle.get(id(source))

    def rebind(self, index: int, place: str) -> None:
        """A place that held a variable, for example an attribute, now holds a tensor."""
        self._owned[index] = replace(self._owned[index], rebound=place)

    def of_handle(self, graph: Any, handle: Any) -> int | None:
        """The index of the variable whose handle `graph` captured as `handle`.

        Each resource that is not listed, such as the total of a metric, has its own negative number; None if the handle
        was not captured.
        """
        captured = self._outermost(graph, handle)
        if captured is None:
            return None
        key = id(captured)
        if key not in self._by_handle and key not in self._ignored:
            self._ask_owner()
        if key not in self._by_handle and key not in self._ignored:
            for variable in getattr(graph, "variables", ()):
                if _key(variable) == key and self._meets(variable):
                    return self.index_of(variable)
        return self._by_handle.get(key, -1 - self._unlisted.setdefault(key, len(self._unlisted)))

    def _ask_owner(self) -> None:
        owned, ignored = self._owner
        self._ignored.update(_key(variable) for variable in ignored())
        for item in owned():
            index = self.add(item)
            if not self._owned[index].tracked:  # the step has created it, and used it before its owner listed it
                self._owned[index] = item

    def _outermost(self, graph: Any, tensor: Any) -> Any:
        """The tensor that a graph's placeholder captured, followed through the enclosing graphs."""
        while True:
            tensor = self._captured(graph, tensor)
            if tensor is None or isinstance(tensor, tf.__internal__.EagerTensor):
                return tensor
            graph = tensor.graph

    def _captured(self, graph: Any, tensor: Any) -> Any:
        known = self._captures.get(id(graph))
        if known is None or id(tensor) not in known:
            known = {id(inner): outer for outer, inner in getattr(graph, "captures", ())}
            self._captures[id(graph)] = known
        return known.get(id(tensor))

    def meet(self, layer: Any) -> None:
        """Called when the step calls a Keras layer, which knows which of its weights are not trainable."""
        self._layers[id(layer)] = layer

    def _call_as_layers_do(self) -> None:
        """Variables of layers that no owner lists were first seen as TensorFlow's own variables, which share their
        short names."""
        for layer in self._layers.values():
            with suppressed():
                for weight in layer.weights:
                    found = self._by_handle.get(_key(local(weight))) if getattr(weight, "path", None) else None
                    if found is not None and not self._owned[found].tracked:
                        self._owned[found] = replace(self._owned[found], name=weight.path)

    def _frozen(self) -> frozenset[int]:
        """Among variables that no owner lists, those of layers with `trainable = False`: TensorFlow's own variables do
        not know about it. Evaluated at the end, since a step may build its layers.
        """
        weights: list[Any] = []
        for layer in self._layers.values():
            with suppressed():  # the attributes of a user's layer may do anything
                weights += map(local, layer.non_trainable_weights)
        known = {self._by_handle.get(_key(weight)) for weight in weights if isinstance(weight, tf.Variable)}
        return frozenset(index for index in known if index is not None and not self._owned[index].tracked)

    def _plain(self) -> frozenset[int]:
        """Among the variables to be trained that the model does not list, those that a layer of Keras 3 holds itself,
        in an attribute or a list in one."""
        keras = sys.modules.get("keras")
        kind = getattr(keras, "Layer", None)
        if kind is None or not any(item.tracked for item in self._owned):
            return frozenset()
        held = set[object]()
        with suppressed():  # what a user's layer holds may do anything
            for layer in (each for each in self._layers.values() if isinstance(each, kind)):
                for value in list(vars(layer).values()):
                    listed = value.values() if isinstance(value, dict) else value
                    several = listed if isinstance(value, (dict, list, tuple)) else ()
                    held.update(_key(each) for each in (value, *several) if isinstance(each, tf.Variable))
        return frozenset(
            index
            for index, item in enumerate(self._owned)
            if item.trainable and not item.tracked and not self._is_computed(item) and _key(item.variable) in held
        )

    def find_names(self, places: Callable[[Iterable[Any]], Mapping[int, str]] | None = None) -> None:
        """Finds the names in the user's code of those without a name; not again for those that were found."""
        sought = [
            each.variable for each in self._owned if self._is_unnamed(each) and id(each.variable) not in self._written
        ]
        if sought:
            # It goes through objects of the user's, whose attributes may do anything.
            with suppressed():
                self._written.update((places or self._called_here)(sought))

    def _is_unnamed(self, item: Owned) -> bool:
        return not self._is_computed(item) and is_unnamed(item.name)

    def _called(self, item: Owned) -> str:
        """The name in the user's code of a variable without a name; empty if it has one, or if it is not known."""
        return self._written.get(id(item.variable), "") if self._is_unnamed(item) else ""

    def records(self, asked: Iterable[Iterable[int]] = (), *, keep_source: bool = True) -> tuple[schema.Variable, ...]:
        """The variables as in the log, where each has a unique name. A weight in one of the lists `asked` is intended
        to be trained, even if its layer is not trainable, because the tape returns a result for it."""
        self._ask_owner()
        self._call_as_layers_do()
        frozen = self._frozen().difference(*asked)
        plain = self._plain()
        self.find_names(functools.partial(names_in, self._layers.values()))
        names = distinct([item.name if keep_source or not self._is_expression(item) else "tensor" for item in self])
        return tuple(
            schema.Variable(
                name=name,
                shape=shape_of(item.variable) or (),
                dtype=item.variable.dtype.base_dtype.name,
                trainable=item.trainable and index not in frozen,
                tracked=item.tracked,
                computed=self._is_computed(item),
                rebound=item.rebound,
                made=self._is_made(item),
                written=self._called(item) if keep_source else "",
                elsewhere=item.elsewhere if keep_source else "",
                plain=index in plain,
                held=item.held,
            )
            for index, (name, item) in enumerate(zip(names, self._owned, strict=True))
        )

    def _is_computed(self, item: Owned) -> bool:
        return isinstance(item.variable, GivenTensor)

    def _is_expression(self, item: Owned) -> bool:
        """Whether the name of a tensor is an expression of the user's code."""
        return self._is_computed(item) and not all(part.isidentifier() for part in item.name.split("."))

    def _is_made(self, item: Owned) -> bool:
        return not self._is_computed(item) and bool(_handle_of(item.variable)._id > self._began)


def distinct(names: Sequence[str]) -> list[str]:
    """Makes names unique: `loss`, `loss (2)`."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def raw_variable(variable: Any) -> Any:
    """The `tf.Variable` inside a Keras variable, of Keras 3 or 2."""
    # One that is distributed hands on what it does not have itself to its value, for which replicas may have to meet.
    own = vars(variable).get if isinstance(variable, DistributedVariable) else functools.partial(getattr, variable)
    for wrapped in ("_value", "_variable"):
        value = own(wrapped, None)
        if isinstance(value, tf.Variable):
            return value
    return variable


def listed_sources(sources: Any) -> list[Any]:
    """The sources of a gradient request, one by one: a single variable or tensor, or any nested structure of them. A
    ragged or sparse tensor is represented by its values.
    """
    is_one = isinstance(raw_variable(sources), (tf.Variable, tf.Tensor, np.ndarray))
    listed = [sources] if is_one else flat_sources(sources)
    return [each.values if isinstance(each, tf.SparseTensor) else each for each in listed]


def is_variable(value: Any) -> bool:
    """Whether a value is a variable of TensorFlow or of Keras."""
    return isinstance(raw_variable(value), tf.Variable)


def replica_here() -> int:
    """The replica of this process that the current thread traces: TensorFlow gives each replica a thread."""
    return int(getattr(threading.current_thread(), "replica_id", 0))


def is_replica() -> bool:
    """Whether the current thread was created by a strategy for one of its replicas."""
    return hasattr(threading.current_thread(), "replica_id")


def local(variable: Any) -> Any:
    """The current replica's `tf.Variable` of a mirrored variable; otherwise the variable itself."""
    raw = raw_variable(variable)
    return raw.values[replica_here()] if isinstance(raw, DistributedVariable) else raw


def has_weights(model: Any) -> bool:
    """Whether the weights of a model can be read: a Keras 2 model that its first step builds, such as a `Sequential`
    without an input shape, raises before that, and so does every model that holds one.
    """
    if not hasattr(model, "_assert_weights_created"):
        return True
    try:
        return model.weights is not None
    except ValueError:
        return False


def is_floating(item: Owned) -> bool:
    """Whether its norms are meaningful."""
    if isinstance(item.variable, MadeTensor):
        return False
    dtype = item.variable.dtype
    return bool(dtype.is_floating or dtype.is_complex)


def has_one_shape(item: Owned) -> bool:
    """Whether its values before and after a step can be subtracted: a variable with an unknown dimension may grow."""
    return bool(tf.TensorShape(item.variable.shape).is_fully_defined())


def _key(variable: Any) -> object:
    return id(_handle_of(variable))


def _handle_of(variable: Any) -> Any:
    return local(variable).handle


def is_trainable(variable: Any) -> bool:
    """Whether a `tf.Variable` says so."""
    return bool(variable.trainable)
