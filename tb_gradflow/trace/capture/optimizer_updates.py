"""The arguments and the state of an optimizer of Keras 3, of either kind of Keras 2, or of TensorFlow 1 when it updates
variables."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from tb_gradflow.record.python import calls_within, parsed
from tb_gradflow.record.schema import Optimizer
from tb_gradflow.trace.graph.variables import is_variable, raw_variable
from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.user_line import origin_of

# The optimizers' names for the lists of variables whose values move weights later: Keras 3.15 and tf_keras 2.21.
# Squares of gradients alone move nothing.
_MEMORIES = ("momentums", "_momentums", "_m", "_linears", "adam_momentums", "_accumulated_gradients")
_SLOTS = frozenset({"momentum", "m", "linear"})

_CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")

# Attributes that describe no setting.
_STATES = frozenset({"built", *_CLIPS})

# Their updates have about the size of the learning rate, whatever the gradient is. Those of the others are proportional
# to it.
_PROPORTIONAL = frozenset({"SGD", "GradientDescentOptimizer"})


@dataclass(frozen=True, slots=True, eq=False)
class CalledClip:
    """A call of a function that clips gradients.

    Attributes:
        by: The function, such as `tf.clip_by_global_norm`.
        limit: Its limit; `None` if that is not a constant.
        before: What it was given.
        after: What it has returned, in the same order.
        frames: The stack at the call.
    """

    by: str
    limit: float | None
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    frames: Sequence[Frame]


@dataclass(slots=True)
class Given:
    """One variable that an optimizer is about to update.

    Attributes:
        variable: The `tf.Variable`.
        gradient: The gradient that the optimizer gets.
        memories: The optimizer's variables for state from earlier gradients, shaped like this one.
        remembers: Bool, shaped like the variable: where that state is not zero; `None` if there is none, or if it was
            not read.
        decay: The weight decay that is applied to it apart from the gradient.
        constraint: Name of the class of its constraint; empty without one.
        clips: The calls that have clipped the gradient, the last one first.
    """

    variable: Any
    gradient: Any
    memories: Sequence[Any]
    decay: float
    constraint: str
    remembers: Any = None
    clips: tuple[CalledClip, ...] = ()

    def read(self) -> None:
        """In the step, before the update."""
        self.remembers = is_any_nonzero([memory.read_value() for memory in self.memories])


@dataclass(slots=True)
class Applied:
    """One update.

    Attributes:
        optimizer: Its form in the log.
        rate: The learning rate, a variable, tensor or number; `None` if that is not known.
        is_proportional: Whether its updates are proportional to the gradient.
        given: The variables.
        frames: The stack at the call.
        by: The optimizer itself.
        clip: The argument by which it clips gradients, and its value; `None` if it does not.
        divisor: What it divides the gradients by before that: a number, or a variable; `None` if it does not.
        scale: The loss scale that it adapts, a variable; `None` if there is none.
        updates: The variable that counts the updates that it has applied.
    """

    optimizer: Optimizer
    rate: Any
    is_proportional: bool
    given: list[Given] = field(default_factory=list)
    frames: Sequence[Frame] = ()
    by: Any = None
    clip: tuple[str, float] | None = None
    divisor: Any = None
    scale: Any = None
    updates: Any = None

    def read(self) -> None:
        """In the step, before the update: what is known only then."""
        self.rate = None if self.rate is None else as_number(self.rate)
        self.divisor = None if self.divisor is None else as_number(self.divisor)
        self.scale = None if self.scale is None else as_number(self.scale)
        for each in self.given:
            each.read()

    def in_log(self, *, keep_source: bool) -> Optimizer:
        """The optimizer, with the user's call of it if lines are kept."""
        source = origin_of(self.frames, "", keep_source=keep_source).source
        return self.optimizer if source is None else replace(self.optimizer, call=_call_in(source.code))


@dataclass(frozen=True, slots=True)
class Moved:
    """A variable that is updated once.

    Attributes:
        variable: Its index.
        update: The number of the update.
        applied: The update.
        given: The optimizer's arguments for it.
    """

    variable: int
    update: int
    applied: Applied
    given: Given

    @property
    def is_scaled(self) -> bool:
        """Whether the gradient is still scaled, and so says nothing of the length of a step."""
        return self.applied.optimizer.scaled and self.applied.is_proportional


def _call_in(code: str) -> str:
    """The call of an optimizer in a line; empty if there is none, or not the whole of it."""
    tree = parsed(code.strip())
    calls = calls_within(tree, "apply_gradients", "apply") if tree is not None else []
    return next((ast.unparse(call) for call in calls if isinstance(call.func, ast.Attribute)), "")


def applied_by(optimizer: Any, args: Sequence[Any]) -> list[Applied]:
    """The updates of an optimizer that is called with `args`: `apply(gradients, variables)`, or
    `apply_gradients(pairs)`. Its state is read now, before the update. Several if it passes variables to other
    optimizers, as Keras's `MultiOptimizer` does."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    is_scaled = inner is not optimizer or getattr(inner, "loss_scale_factor", None) is not None
    by_applier: dict[int, Applied] = {}
    for gradient, variable in _pairs(inner, args):
        if gradient is None or not is_variable(variable) or not raw_variable(variable).dtype.is_floating:
            continue
        applier = _applier_of(inner, variable)
        if applier is None:
            continue
        applied = by_applier.setdefault(id(applier), _applied(applier, is_scaled=is_scaled))
        applied.given.append(_given(applier, gradient, variable))
    found = list(by_applier.values()) or ([] if _gives_away(inner) else [_applied(inner, is_scaled=is_scaled)])
    for each in found:
        if inner is not optimizer:
            each.scale, each.updates = _dynamic_scale(optimizer), _updates(inner)
        if hasattr(optimizer, "scale_loss"):  # before Keras 3, the caller has divided what is applied
            unknown = float("nan") if each.scale is None else each.scale
            each.divisor = unknown if inner is not optimizer else getattr(inner, "loss_scale_factor", None)
    return found


def _dynamic_scale(optimizer: Any) -> Any:
    """The variable with the loss scale that an optimizer adapts; `None` if it has none, or none yet."""
    scale = getattr(optimizer, "dynamic_scale", None)
    if scale is None:
        scale = getattr(getattr(optimizer, "_loss_scale", None), "current_loss_scale", None)
    return raw_variable(scale) if is_variable(scale) else None


def _updates(optimizer: Any) -> Any:
    counted = getattr(optimizer, "iterations", None)
    return raw_variable(counted) if is_variable(counted) else None


def _gives_away(optimizer: Any) -> bool:
    """Whether it is a Keras 3 optimizer that passes each variable to another optimizer."""
    return hasattr(optimizer, "_inner_optimizers") and hasattr(optimizer, "_optimizer_map")


def _applier_of(optimizer: Any, variable: Any) -> Any:
    """Which optimizer updates a variable; `None` if that is not known yet."""
    if not _gives_away(optimizer):
        return optimizer
    places = getattr(optimizer, "_var_to_optimizer_idx", None)
    if places is not None:
        place = places.get(optimizer._var_key(variable))
        return None if place is None else optimizer._inner_optimizers[place]
    # The user's function may create a new optimizer each time it is called.
    return optimizer._optimizer_map(variable) if hasattr(optimizer._optimizer_map, "default_optimizer") else None


def _applied(optimizer: Any, *, is_scaled: bool) -> Applied:
    known = Optimizer(
        type=type(optimizer).__name__,
        memory=any(_memories(optimizer)) or bool(_SLOTS.intersection(_slot_names(optimizer))),
        scheduled=_schedule(optimizer) is not None,
        clips=", ".join(
            f"{name}={value:g}" for name in _CLIPS if (value := getattr(optimizer, name, None)) is not None
        ),
        averages=bool(getattr(optimizer, "use_ema", False) and getattr(optimizer, "ema_overwrite_frequency", None)),
        accumulates=int(getattr(optimizer, "gradient_accumulation_steps", None) or 1),
        scaled=is_scaled,
        has_slots=callable(getattr(optimizer, "get_slot_names", None)),
        options=tuple(_options(optimizer)),
    )
    return Applied(
        known, _rate(optimizer), known.type in _PROPORTIONAL and not known.memory, by=optimizer, clip=_clip(optimizer)
    )


def _clip(optimizer: Any) -> tuple[str, float] | None:
    """The first limit counts, as in Keras, unless the optimizer is the user's and clips in another way."""
    clips = getattr(type(optimizer), "_clip_gradients", None) or getattr(type(optimizer), "_transform_gradients", None)
    if not str(getattr(clips, "__module__", "")).startswith(("keras.", "tf_keras.")):
        return None
    for name in _CLIPS:
        limit = getattr(optimizer, name, None)
        if isinstance(limit, (int, float)) and limit > 0:
            return name, float(limit)
    return None


def _options(optimizer: Any) -> Iterator[str]:
    """Its attributes that are numbers. Its class may be the user's own, so no method of it is called."""
    for name, value in vars(optimizer).items() if hasattr(optimizer, "__dict__") else ():
        # TensorFlow 1 has `_beta1`. Private ones that are whole count something.
        is_setting = isinstance(value, float) or (isinstance(value, int) and not name.startswith("_"))
        if is_setting and name not in _STATES:
            yield f"{name.lstrip('_')}={value:g}" if isinstance(value, float) else f"{name}={value}"


def _given(optimizer: Any, gradient: Any, variable: Any) -> Given:
    memories = [memory for memory in _memories_of(optimizer, variable) if memory.shape == variable.shape]
    constraint = getattr(variable, "constraint", None)
    return Given(
        raw_variable(variable),
        gradient,
        memories,
        _decay(optimizer, variable),
        "" if constraint is None else getattr(constraint, "__name__", type(constraint).__name__),
    )


def _pairs(optimizer: Any, args: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    first = args[0] if args else ()
    if not isinstance(first, (list, tuple)):
        return  # an iterator would be used up
    if first and all(isinstance(each, tuple) and len(each) == 2 for each in first):
        yield from first
        return
    variables = args[1] if len(args) > 1 and args[1] is not None else optimizer._trainable_variables
    yield from zip(first, variables, strict=False)


def _memories(optimizer: Any) -> Iterator[Sequence[Any]]:
    for name in _MEMORIES:
        listed = getattr(optimizer, name, None)
        if isinstance(listed, (list, tuple)) and listed:
            yield listed


def _memories_of(optimizer: Any, variable: Any) -> list[Any]:
    raw = raw_variable(variable)
    index = _index_of(optimizer, variable)
    found = [listed[index] for listed in _memories(optimizer) if index is not None and index < len(listed)]
    for name in _SLOTS.intersection(_slot_names(optimizer)):
        if isinstance(optimizer, tf.compat.v1.train.Optimizer):
            found.append(optimizer.get_slot(raw, name))
            continue
        slots = getattr(optimizer, "_slots", {}).get(getattr(raw, "_unique_id", None), {})
        found += [slots[name]] if name in slots else []
    return [raw_variable(each) for each in found if is_variable(each)]


def _index_of(optimizer: Any, variable: Any) -> int | None:
    """The position of a variable in the optimizer's lists; `None` before they are created."""
    places = getattr(optimizer, "_trainable_variables_indices", None) or getattr(optimizer, "_index_dict", None)
    if not places:
        return None
    found = places.get(optimizer._var_key(variable))
    return None if found is None else int(found)


def _slot_names(optimizer: Any) -> Sequence[str]:
    names = getattr(optimizer, "get_slot_names", None)
    return names() if callable(names) else ()


def is_any_nonzero(memories: Sequence[Any]) -> Any:
    """Bool: where one of several tensors of one shape is not zero; `None` if there are none."""
    found = None
    for memory in memories:
        marked = tf.not_equal(memory, tf.zeros([], memory.dtype))
        found = marked if found is None else found | marked
    return found


def _decay(optimizer: Any, variable: Any) -> float:
    decay = getattr(optimizer, "weight_decay", None)
    by_adam = getattr(optimizer, "_should_use_adamw", None)
    if callable(by_adam) and decay is not None and by_adam(variable):
        decay = getattr(optimizer, "adam_weight_decay", decay)  # Muon leaves what is no matrix to AdamW
    uses = getattr(optimizer, "_use_weight_decay", None)
    if not isinstance(decay, (int, float)) or not decay or (callable(uses) and not uses(variable)):
        return 0.0
    return float(decay)


def _schedule(optimizer: Any) -> Any:
    rate = getattr(optimizer, "_learning_rate", None)
    if rate is None and hasattr(optimizer, "_hyper"):
        rate = optimizer._hyper.get("learning_rate")
    return rate if callable(rate) and not is_variable(rate) else None


def _rate(optimizer: Any) -> Any:
    """That of a schedule is known when the optimizer uses it: it may count how often it is asked."""
    if _schedule(optimizer) is not None:
        return None
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        rate = getattr(optimizer, "_lr", getattr(optimizer, "_learning_rate", None))
        return None if callable(rate) and not is_variable(rate) else raw_variable(rate)
    return raw_variable(getattr(optimizer, "learning_rate", None))


def rate_in_step(rate: Any, graph: Any, own: Collection[str]) -> Any:
    """A learning rate, after its optimizer has been traced, which has added the ops named in `own` to `graph`: as a
    tensor of the step if that may change the variable before the update, as the value before the step is another one
    then."""
    if not isinstance(rate, tf.Variable):
        return rate
    handle = getattr(rate, "handle", None)
    inside = next((each for outer, each in getattr(graph, "captures", ()) if outer is handle), None)
    users = [] if inside is None else inside.consumers()
    reads = [each.outputs[0] for each in users if each.type == "ReadVariableOp" and each.name in own]
    is_changed = any(each.type not in _UNCHANGED and each.name not in own for each in users)
    return reads[0] if reads and is_changed else rate


_UNCHANGED = frozenset({"ReadVariableOp", "VariableShape", "VarIsInitializedOp"})


def as_number(rate: Any) -> Any:
    """float32 scalar: a learning rate; NaN if it is not known."""
    return tf.constant(float("nan")) if rate is None else tf.cast(tf.convert_to_tensor(rate), tf.float32)
