"""The requests to a tape and its results, and how custom gradients compare with the derivative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Response = Literal["linear", "constant", "other", "unknown"]
"""How the output of a gradient function depends on the gradient that it receives: proportional, as for a derivative;
constant; otherwise (clipped, its sign, with noise); or not measured.
"""

Outcome = Literal["value", "none", "not_asked", "error"]
"""What the tape returned: a tensor, None, nothing because no gradient was requested, or an exception."""


@dataclass(frozen=True, slots=True)
class Target:
    """A loss: what one call of `tape.gradient` differentiated.

    Attributes:
        name: A readable name.
        op: Index in `Trace.ops` of the op that produced it; -1 if it depends on no variable.
        output: Which of its outputs.
        source: Index in `Trace.sources` of the line that requested the gradient.
        unconnected: What the caller requested instead of a missing gradient.
        scaled: Whether the optimizer had scaled it against underflow; statistics are unscaled in any case.
        measured: Whether its value is among the losses; if not, NaN stands for it.
        automatic: Whether its tape watched all trainable variables that were read; null if not known.
        sources: How many sources the call listed, variables and tensors; null in older logs.
        variable: Whether what was differentiated is a variable; not known in older logs.
        by_hand: Whether its gradients were passed to `summary.gradients` rather than taken from a tape; not known in
            older logs.
        passed: Whether the answers were passed to `summary.gradients`, so that no tape was observed; not known in older
            logs.
    """

    name: str
    op: int
    output: int
    source: int | None
    unconnected: Literal["none", "zero"]
    scaled: bool = False
    measured: bool = True
    automatic: bool | None = None
    sources: int | None = None
    variable: bool = False
    by_hand: bool = False
    passed: bool = False


@dataclass(frozen=True, slots=True)
class VariableGradient:
    """What the tape returned for one variable and one target.

    Attributes:
        target: Index in `Trace.targets`.
        variable: Index in `Trace.variables`.
        outcome: The answer.
        row: Row of `Chunk.gradients` with its statistics; null unless the outcome is `value`.
        watched: Whether the tape watched the variable.
    """

    target: int
    variable: int
    outcome: Outcome
    row: int | None
    watched: bool


@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer that applied gradients, and its settings that move weights or keep them fixed.

    Attributes:
        type: Name of its class, such as `AdamW`.
        memory: Whether its state from earlier gradients moves weights: momentum, sums of gradients.
        scheduled: Whether its learning rate follows a schedule.
        clips: How it clips gradients, such as `clipnorm=1.0`; empty if it does not.
        averages: Whether it may replace the weights by moving averages.
        accumulates: Number of steps over which it sums gradients before it applies them.
        scaled: Whether it divides by a loss scale, and skips steps whose gradients are not finite.
        call: The user's own call of it, such as `opt.apply_gradients(zip(grads, [w]))`; empty if none is known.
        has_slots: Whether its state is only accessible with `get_slot`, as before Keras 3.
        options: Its other settings that are numbers, such as `epsilon=1e-07`; none in older logs.
    """

    type: str
    memory: bool
    scheduled: bool
    clips: str
    averages: bool
    accumulates: int
    scaled: bool
    call: str = ""
    has_slots: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Movement:
    """The update of a variable for which an optimizer got a gradient: what else may have moved it, and the row of its
    measurement.

    Attributes:
        variable: Index in `Trace.variables`.
        optimizer: Index in `Trace.optimizers`.
        row: Row of `Chunk.gradients` whose columns are `MOVEMENT_STATISTICS`.
        decay: The weight decay that the optimizer applies to it apart from the gradient; 0 if none.
        constraint: Name of the class of its constraint; empty without one.
    """

    variable: int
    optimizer: int
    row: int
    decay: float
    constraint: str


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip of gradients on their path from the tape to the weights, by the step itself or by an optimizer.

    Attributes:
        by: How the user wrote it: an argument of the optimizer, such as `global_clipnorm`, or the function that the
            step calls, such as `tf.clip_by_global_norm`.
        limit: The limit; null if it is not a constant.
        variables: Indices in `Trace.variables` of those whose gradient it clips.
        row: Row of `Chunk.gradients` with its `CLIP_STATISTICS`.
        optimizer: Index in `Trace.optimizers` of the optimizer that clips, or that gets what the step has clipped.
        at: Index in `Trace.sources` of the line that calls the function; null if it is not kept, or if the optimizer
            clips.
    """

    by: str
    limit: float | None
    variables: tuple[int, ...]
    row: int
    optimizer: int
    at: int | None = None


@dataclass(frozen=True, slots=True)
class LossScale:
    """The factor by which an optimizer multiplies the loss against underflow, and which it adapts.

    Attributes:
        optimizer: Index in `Trace.optimizers`.
        row: Row of `Chunk.gradients` with its `LOSS_SCALE_STATISTICS`.
    """

    optimizer: int
    row: int


@dataclass(frozen=True, slots=True)
class Deferred:
    """A variable whose gradient the step adds to another variable, or that the step updates only under a condition:
    gradient accumulation that the user wrote by hand.

    Attributes:
        variable: Index in `Trace.variables`.
        summed: Whether the step adds the gradient to another variable.
        summed_at: Index in `Trace.sources` of the line that does; null if it is not kept.
        conditional: Whether the step updates the variable inside a branch, and nowhere else.
        condition_at: Index in `Trace.sources` of the line with the condition; null if it is not kept. If the step is
            not `conditional`, Python decided it while the step was compiled, and left out the update.
    """

    variable: int
    summed: bool
    summed_at: int | None
    conditional: bool
    condition_at: int | None


@dataclass(frozen=True, slots=True)
class Replaced:
    """A variable to which the step assigns mostly the value of another one, after an optimizer has updated it.

    Attributes:
        variable: Index in `Trace.variables`.
        by: Index of the other one.
        share: The factor of the other one's value in the one that is assigned.
        at: Index in `Trace.sources` of the line that assigns it; null if it is not kept.
    """

    variable: int
    by: int
    share: float
    at: int | None


@dataclass(frozen=True, slots=True)
class TensorGradient:
    """What the tape returned for one tensor on the path and one target. A tensor that is not listed was not recorded
    (it is inside a function's body, or was not requested).

    Attributes:
        target: Index in `Trace.targets`.
        op: Index in `Trace.ops` of the op that produced the tensor.
        output: Which of its outputs.
        outcome: The answer.
        row: Row of `Chunk.gradients`; null unless the outcome is `value`.
    """

    target: int
    op: int
    output: int
    outcome: Outcome
    row: int | None


@dataclass(frozen=True, slots=True)
class GradientSample:
    """One element of a gradient, found in three ways.

    Attributes:
        index: Position of the element.
        returned: What the custom gradient returned; null if that is not finite.
        derivative: The derivative, by central differences of which two step sizes agree.
        automatic: TensorFlow's gradient of the forward computation without the custom gradient; null if it has none, or
            if that is not finite.
    """

    index: tuple[int, ...]
    returned: float | None
    derivative: float
    automatic: float | None


@dataclass(frozen=True, slots=True)
class InputCheck:
    """A custom gradient with respect to one input, compared with the derivative.

    Attributes:
        input: Which input of the op.
        shape: Of the input, -1 where unknown; null if not even the rank is known.
        returned_shape: Of what was returned; null if nothing was, or the rank is unknown.
        error_share: Norm of the error of the returned gradient, divided by the norm of the derivative, where that is
            not zero; null if TensorFlow cannot differentiate the forward computation.
        ratio: The returned gradient divided by the derivative, if that is the same number for all elements.
        samples: The elements that differ most.
    """

    input: int
    shape: tuple[int, ...] | None
    returned_shape: tuple[int, ...] | None
    error_share: float | None
    ratio: float | None
    samples: tuple[GradientSample, ...]


HowLost = Literal["dropped", "mixed", "unused"]
"""How a mask gets lost; see `DroppedMask.how`."""


@dataclass(frozen=True, slots=True)
class DroppedMask:
    """A layer that gets an input with a mask and does not propagate the mask; or a tensor with a mask that goes into no
    layer.

    Attributes:
        layer: Its name; for a tensor that goes into no layer, that of the layer that returned it.
        type: Its class.
        target: Index in `Trace.targets`.
        row: Row of `Chunk.gradients` with the statistics of the gradient at the masked steps, with zeros elsewhere.
        how: Whether the layer drops the mask; or propagates it, but computes unmasked steps from padding too; or the
            tensor goes into no layer.
        op: Index in `Trace.ops` of the op that computes that tensor; -1 if it is not known.
    """

    layer: str
    type: str
    target: int
    row: int
    how: HowLost = "dropped"
    op: int = -1


@dataclass(frozen=True, slots=True)
class Override:
    """An entry of a `gradient_override_map` whose block created ops of the step.

    Attributes:
        type: Op type whose gradient it replaces.
        gradient: The name under which the replacement is registered.
        source: Index in `Trace.sources` of the line where the block begins; null if it is not kept.
        used: Whether an op of that type was created inside the block.
    """

    type: str
    gradient: str
    source: int | None
    used: bool


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """A custom gradient, evaluated in one step with the gradient that arrived there.

    Attributes:
        op: Index in `Trace.ops`.
        function: The user's name of the function that has it; empty if unknown.
        source: Index in `Trace.sources` of the line where the gradient function begins; null if unknown.
        forward: Types of the ops inside, each once.
        identity: Whether its result is its input, element by element.
        response: How its output depends on the gradient that it receives.
        inputs: The inputs that were compared.
        problem: Why nothing was compared, or what the gradient function raised; empty if neither happened.
    """

    op: int
    function: str
    source: int | None
    forward: tuple[str, ...] = ()
    identity: bool = False
    response: Response = "unknown"
    inputs: tuple[InputCheck, ...] = ()
    problem: str = ""
