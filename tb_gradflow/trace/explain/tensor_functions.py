"""Functions of tensors and variables for `check_gradients`, which compares the tape's gradient with finite
differences.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.evidence.discrete import COMPARISON, ROUNDING, SEARCHING
from tb_gradflow.errors import SetupError
from tb_gradflow.gradcheck.leaves import copied, gradients_by_argument, is_number_list, leaves, named_leaves, replaced
from tb_gradflow.gradcheck.problem import Argument, Array, Point, Problem, not_compared
from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.explain.one_step import explain_function
from tb_gradflow.trace.fidelity.object_graph import Bindings
from tb_gradflow.trace.fidelity.rollback import undone
from tb_gradflow.trace.graph.variables import is_variable, raw_variable
from tb_gradflow.trace.numerics.statistics import epsilon_of
from tb_gradflow.trace.protection.attention import left_alone

_SEED = 20_261

_STEPPING = ROUNDING | COMPARISON | SEARCHING | {"Sign"}


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor or a variable."""
    return isinstance(value, tf.Tensor) or is_variable(value)


def takes_tensors(function: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether a function computes with TensorFlow: it gets tensors, or returns one."""
    if named_leaves(args, is_tensor):
        return True
    with undone([], [function]):
        return is_tensor(function(*copied(args)))


class TensorFunction:
    """A function of tensors and variables, with random numbers and states that are the same in each call.

    Args:
        function: Returns a tensor of one number.
        args: The arguments. Floating arrays and numbers become tensors.
        gradient: The user's own gradient, instead of the tape's; `None` if there is none.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], gradient: Callable[..., Any] | None) -> None:
        self._function, self._gradient = function, gradient
        self._args = tuple(replaced(each, _becomes_tensor, iter(_tensors(each))) for each in args)
        self._leaves = [(name, leaf) for name, leaf in named_leaves(self._args, is_tensor) if _dtype(leaf).is_floating]
        if not self._leaves:
            raise SetupError(
                "check_gradients: `args` contains no floating-point tensors, arrays or numbers; split a complex "
                "argument into its real and imaginary part: `lambda re, im: f(tf.complex(re, im))`"
            )
        self._points = [raw_variable(leaf).numpy() for _, leaf in self._leaves]
        self._checked = list(range(len(self._leaves)))
        self._restored: list[tuple[Any, Any]] = []
        self._trained: list[tuple[Any, Any]] = []
        self._generators = random.getstate(), np.random.get_state()
        self._seeded = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[Problem]:
        """The gradient to check; everything that calls of the function change is restored when the context ends."""
        variables = [leaf for _, leaf in self._leaves if is_variable(leaf)]
        seeds = context.context()._seed, getattr(context.context(), "_rng", None)
        with left_alone(), undone(variables, [self._function]) as bindings:
            self._restored = list(_states(bindings, trainable=False))
            own = {id(raw_variable(variable)) for variable in variables}
            self._trained = [pair for pair in _states(bindings, trainable=True) if id(pair[0]) not in own]
            try:
                yield self._problem()
            finally:
                context.context()._seed, context.context()._rng = seeds

    def gradients(self, points: Sequence[Array]) -> Sequence[Array]:
        """The gradient at another point."""
        with self._at(points) as args:
            found, _ = self._taken(args)
        known = [found[place] for place in self._checked]
        return [np.zeros(point.shape) if each is None else each for each, point in zip(known, points, strict=True)]

    def _problem(self) -> Problem:
        value = self._value(self._points)
        # A variable that the function itself changes is a state, even if its owner calls it trainable.
        self._restored += [(raw, before) for raw, before in self._trained if not np.array_equal(raw.numpy(), before)]
        self._seeded = value != self._value(self._points)
        with self._at([self._points[place] for place in self._checked]) as args:
            gradients, resolution = self._taken(args)
        seen = self._seen([gradient is None for gradient in gradients])
        arguments = [
            Argument(
                name,
                point,
                gradient,
                max(epsilon_of(_dtype(leaf)), resolution, seen.coarsest),
                seen.rounds,
                seen.missing.get(name, ""),
                seen.replaced,
            )
            for (name, leaf), point, gradient in zip(self._leaves, self._points, gradients, strict=True)
        ]
        if self._gradient is None:
            return Problem(self._value, arguments, tuple(self._complex()))
        if all(gradient is None for gradient in gradients):
            raise SetupError(
                "check_gradients: the gradient returned only None: it has no `return`, or returns too early"
            )
        self._checked = [place for place, gradient in enumerate(gradients) if gradient is not None]
        left_out = [each.name for each in arguments if each.gradient is None]
        compared = [arguments[place] for place in self._checked]
        return Problem(self._value, compared, (*map(not_compared, left_out), *self._complex()))

    def _complex(self) -> Iterator[str]:
        for name, leaf in named_leaves(self._args, is_tensor):
            if _dtype(leaf).is_complex:
                yield f"Argument {name} was not compared: it is complex. Pass its real and its imaginary part."

    def _value(self, points: Sequence[Point]) -> float:
        with self._at(points) as args:
            return float(_total(self._function(*args)))

    @contextlib.contextmanager
    def _at(self, points: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The arguments with these values; variables hold the values for that time."""
        for variable, before in self._restored:
            variable.assign(before)
        if self._seeded:
            tf.random.set_seed(_SEED)
        random.setstate(self._generators[0])
        np.random.set_state(self._generators[1])
        everywhere = list(self._points)
        for place, point in zip(self._checked, points, strict=True):
            everywhere[place] = point
        given = []
        for (_, leaf), point in zip(self._leaves, everywhere, strict=True):
            if is_variable(leaf):
                leaf.assign(tf.cast(point, _dtype(leaf)))
            given.append(leaf if is_variable(leaf) else tf.cast(point, _dtype(leaf)))
        others = iter(given)
        floating = {id(leaf) for _, leaf in self._leaves}
        try:
            yield tuple(replaced(each, lambda value: id(value) in floating, others) for each in self._args)
        finally:
            for (_, leaf), point in zip(self._leaves, self._points, strict=True):
                if is_variable(leaf):
                    leaf.assign(point)

    def _taken(self, args: tuple[Any, ...]) -> tuple[list[Array | None], float]:
        """The gradient of each leaf, and the machine epsilon of the function's result."""
        given = [leaf for _, leaf in named_leaves(args, is_tensor) if _dtype(leaf).is_floating]
        with tf.GradientTape() as tape:
            tape.watch([raw_variable(each) for each in given])
            result = self._function(*args)
            total = _total(result)
        resolution = epsilon_of(result.dtype)
        if self._gradient is not None:
            found = gradients_by_argument(self._gradient(*args), args)
            flat = [each for pair in zip(args, found, strict=True) for each in _by_leaf(*pair)]
            return [None if each is None else _array(each) for each in flat], resolution
        try:
            gradients = tape.gradient(total, [raw_variable(each) for each in given])
        except LookupError:  # no gradient is registered for an op: `explain` names it
            gradients = [None] * len(given)
        return [None if each is None else _array(each) for each in gradients], resolution

    def _seen(self, missing: Sequence[bool]) -> GradientTraits:
        """What is known of the function from its ops."""
        sources = [raw_variable(leaf) for _, leaf in self._leaves]
        logger = tf.get_logger()
        level = logger.level
        logger.setLevel("ERROR")  # AutoGraph warns about functions that it cannot read, and they run nevertheless
        try:
            explained = explain_function(self._function, self._args, sources)
        # This is only for the wording; functions that cannot be analysed are compared nevertheless.
        except Exception:
            return GradientTraits()
        finally:
            logger.setLevel(level)
        trace, words = explained.trace, {}
        if any(missing):
            diagnosis = diagnose(trace, explained.session, None, None, (), -1)
            # A tensor that is passed as two arguments is one variable.
            places = {identity: place for place, identity in enumerate(dict.fromkeys(map(id, sources)))}
            for place, (name, _) in enumerate(self._leaves):
                known = trace.variables[places[id(sources[place])]].name
                message = next((each.message for each in diagnosis.findings if known in each.variables), "")
                if missing[place] and message:
                    words[name] = f"Why: {message.partition(': ')[2]}"
        # Only for the tape's gradient: one that the user has written may be anything.
        replaced = _replaced(trace) if self._gradient is None else ""
        return GradientTraits(_stands_in(trace), _coarsest(trace), replaced, words)


@dataclass(frozen=True, slots=True)
class GradientTraits:
    """What the ops of a function say of its gradient.

    Attributes:
        rounds: Whether it rounds, compares or chooses, and has a gradient all the same.
        coarsest: The machine epsilon of its coarsest numbers.
        replaced: The user's gradients that replace a derivative, in words; empty if there are none.
        missing: By leaf, why there is no gradient.
    """

    rounds: bool = False
    coarsest: float = 0.0
    replaced: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)


def _replaced(trace: Trace) -> str:
    names = list(dict.fromkeys(f"`{check.function}`" for check in trace.gradient_checks if check.function))
    if names:
        return f"{' and '.join(names)} {'has a custom gradient' if len(names) == 1 else 'have custom gradients'}"
    return "A `stop_gradient` is in force" if any(op.type == "StopGradient" for op in trace.ops) else ""


def _stands_in(trace: Trace) -> bool:
    """Whether ops round, compare or select, together with a gradient that replaces theirs."""
    types = {op.type for op in trace.ops}
    own = any(op.custom_gradient is not None for op in trace.ops) or not types.isdisjoint({"StopGradient"})
    inside = {kind for check in trace.gradient_checks for kind in check.forward}
    return own and not (types | inside).isdisjoint(_STEPPING)


def _coarsest(trace: Trace) -> float:
    """The machine epsilon of the least precise floating numbers: a mixed-precision model keeps its weights and its loss
    in float32, and computes with 16 bits in between.
    """
    named = {tensor.dtype for op in trace.ops for tensor in op.outputs}
    return max((epsilon_of(tf.as_dtype(each)) for each in named & {"float16", "bfloat16", "float32"}), default=0.0)


def _by_leaf(given: Any, gradient: Any) -> Iterator[Any]:
    """The user's gradient of each floating leaf of one argument: nested like the argument."""
    own = [(name, leaf) for name, leaf in leaves(given, is_tensor) if _dtype(leaf).is_floating]
    if len(own) == 1 and own[0][0] == "":
        yield gradient
        return
    parts = dict(leaves(gradient, lambda value: not isinstance(value, (Mapping, list, tuple))))
    yield from (parts.get(name) for name, _ in own)


def _states(bindings: Bindings, *, trainable: bool) -> Iterator[tuple[Any, Any]]:
    """Variables that the function may change when it is called: seeds, counters, moving averages; or its weights."""
    for variable in bindings.variables:
        raw = raw_variable(variable)
        if isinstance(raw, tf.Variable) and variable.trainable == trainable:
            yield raw, raw.numpy()


def _becomes_tensor(value: Any) -> bool:
    """Whether a value that is not a tensor is passed to the function as one."""
    if isinstance(value, np.ndarray):
        return bool(np.issubdtype(value.dtype, np.floating))
    return isinstance(value, float) or is_number_list(value)


def _tensors(value: Any) -> list[Any]:
    return [tf.convert_to_tensor(leaf) for _, leaf in named_leaves([value], _becomes_tensor)]


def _dtype(leaf: Any) -> Any:
    return tf.as_dtype(leaf.dtype)


def _total(result: Any) -> Any:
    """The one number that a function returned, as a scalar."""
    numbers = [tf.convert_to_tensor(each) for each in tf.nest.flatten(result)]
    if (count := sum(int(tf.size(each)) for each in numbers)) != 1:
        raise SetupError(
            f"check_gradients: the function returns {count} values, but a gradient needs a single one: return "
            "their sum, `tf.reduce_sum`, or one of them"
        )
    return tf.add_n([tf.reduce_sum(each) for each in numbers if int(tf.size(each))])


def _array(gradient: Any) -> Array:
    return np.asarray(tf.cast(tf.convert_to_tensor(gradient), tf.float64).numpy())
