"""What a log says: measurements of one training run, never opinions about it.

A run holds *traces* (the structure of the training step, once per compiled version of it) and *chunks* (the
numbers of consecutive recorded steps). Everything here is immutable and survives `codec` unchanged. The
browser's `frontend/src/record.ts` is generated from this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FORMAT = 1
"""Version of everything in this module. Every change adds one, an upgrader and a sample log."""

GRADIENT_STATISTICS = ("norm", "max_abs", "mean_abs", "zero_fraction", "nan_count", "inf_count")
"""Columns of `Chunk.gradients`. The first three are taken over the finite elements; no element, no zero: 0."""

VARIABLE_STATISTICS = ("weight_norm", "update_norm", "nonfinite_before", "nonfinite_after")
"""Columns of `Chunk.variables`: L2 norms of the value after the step, and of what the step changed in it, both over
the finite elements; the numbers of elements that were NaN or infinite before the step, and after it. NaN where that is
not known: the variable is not a floating one, or the log is older than the column."""

Passes = Literal["yes", "none", "not_differentiable", "unregistered", "dtype", "error", "state", "unknown"]
"""Whether an op hands a gradient on to one of its inputs, as TensorFlow itself answers:

yes                 its gradient function returns one
none                it has a gradient function, and that returns None for this input
not_differentiable  the op type is registered as not differentiable
unregistered        no entry in the gradient registry: asking raises LookupError
dtype               the tensor is not floating (integer, bool, string): the tape ignores it
error               the gradient function raised when it was asked
state               not a tensor at all: a value written to a variable, and read back from it
unknown             not asked
"""

Response = Literal["linear", "constant", "other", "unknown"]
"""How a gradient function answers to the gradient that it is given: in proportion, as a derivative has to; the same
whatever it is given; otherwise (clipped, its sign, with noise); or not measured."""

Outcome = Literal["value", "none", "not_asked", "error"]
"""What the tape answered: a tensor, None, nothing because nobody asked, or an exception."""


PYTHON = "Python"
"""Op type of what is no op: Python code that took a value out of TensorFlow, and of which something came back as a
constant. `api` says how it left, such as `.numpy()` or `np.sqrt`."""

SNAPSHOT = "Snapshot"
"""Op type of what is no op either: a tensor from before the step, whose value was found to be computed from that of a
variable. `api` says how, such as `tf.exp`; null where the relation has no name."""

EAGER = "Eager"
"""Op type of what is no op either: all that an eager loss was computed by, where nobody saw it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code.

    Attributes:
        file: Path, relative to the working directory or to where Python imports it from. Older logs have others.
        line: Line number, from one.
        function: Name of the function the line is in.
        code: The line itself, stripped; empty if the file could not be read.
    """

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """An output of an op.

    Attributes:
        shape: Sizes, -1 where unknown until run time; null if not even the rank is known.
        dtype: TensorFlow's name of it, such as `float32`.
    """

    shape: tuple[int, ...] | None
    dtype: str


@dataclass(frozen=True, slots=True)
class Edge:
    """An input of an op.

    Attributes:
        op: Index in `Trace.ops` of the op that produces the tensor; -1 if that op touches no variable and
            was left out (a constant, shape arithmetic, preprocessing).
        output: Which of its outputs.
        input: Which input of the consumer, from zero.
        passes: Whether the consumer hands its gradient on to this input.
        carried: True if the value comes from the previous iteration of a loop. Without these edges the
            graph has no cycle.
    """

    op: int
    output: int
    input: int
    passes: Passes
    carried: bool


@dataclass(frozen=True, slots=True)
class Constant:
    """An input of an op that is a constant with the same value in all elements.

    Attributes:
        input: Which input of the op.
        value: That value; infinity as the largest float32.
    """

    input: int
    value: float


@dataclass(frozen=True, slots=True)
class Op:
    """One op of the forward graph, between a variable and a loss, or where the way to a loss ended.

    Functions are inlined: an op of a function's body is named `<call>/<op>`. Each output of an `If` and each
    loop variable of a `While` stands as an op of its own with that type, its inputs being the predicate and
    the branches' results, or the initial value, the condition and the body's result.

    Attributes:
        name: TensorFlow's name of it, unique in the trace; `/` separates name scopes.
        type: TensorFlow's op type, such as `MatMul`.
        inputs: In the op's order. Data inputs that were left out are not listed.
        outputs: In the op's order.
        source: Index in `Trace.sources` of the user's line that made it; null if none did.
        api: The function that line called, such as `tf.sequence_mask`; null if unknown.
        reads: Index of the variable whose value it reads; null for most ops.
        writes: Index of the variable that it assigns; null for most ops.
        custom_gradient: Name of the gradient function that `tf.custom_gradient` or
            `gradient_override_map` put in the place of the registered one; null for most ops.
        backward: Whether it was made while an inner gradient was computed, of which the loss is made.
        data: Whether its value depends on data: the batch, what the step captured, drew or has as a table of numbers;
            null if not known.
        constants: Its inputs that are constants.
        input_count: How many inputs it has, listed or not; null if not known.
        differentiable: Whether it hands a gradient on to any of them; null if not known.
        compiled: Whether it lies inside a function that XLA compiles, while the step around it is not compiled.
    """

    name: str
    type: str
    inputs: tuple[Edge, ...]
    outputs: tuple[Tensor, ...]
    source: int | None
    api: str | None
    reads: int | None
    writes: int | None
    custom_gradient: str | None
    backward: bool = False
    data: bool | None = None
    constants: tuple[Constant, ...] = ()
    input_count: int | None = None
    differentiable: bool | None = None
    compiled: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the step reads, or that the model owns.

    Attributes:
        name: Keras's `variable.path`, or `tf.Variable.name` without `:0`.
        shape: Sizes.
        dtype: TensorFlow's name of it.
        trainable: Whether its owner means it to be trained.
        tracked: Whether the model lists it among its variables.
        computed: Whether it is no variable but a tensor that somebody asked a gradient for.
        rebound: The attribute, as code calls it, that held the variable and holds a tensor now; empty if there is
            none.
        made: Whether the step itself made it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    tracked: bool
    computed: bool = False
    rebound: str = ""
    made: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A loss: what one call of `tape.gradient` differentiated.

    Attributes:
        name: What a person would call it.
        op: Index in `Trace.ops` of the op that produced it; -1 if it depends on no variable.
        output: Which of its outputs.
        source: Index in `Trace.sources` of the line that asked for the gradient.
        unconnected: What the caller wanted in the place of a missing gradient.
        scaled: Whether the optimizer had scaled it against underflow; numbers are unscaled all the same.
        measured: Whether its value is among the losses; where it is not, a NaN stands there.
        automatic: Whether its tape watched all trainable variables that were read; null if not known.
    """

    name: str
    op: int
    output: int
    source: int | None
    unconnected: Literal["none", "zero"]
    scaled: bool = False
    measured: bool = True
    automatic: bool | None = None


@dataclass(frozen=True, slots=True)
class VariableGradient:
    """What the tape answered for one variable and one target.

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
class TensorGradient:
    """What the tape answered for one tensor on the way and one target. A tensor that is not listed was not
    recorded (it lies inside a function's body, or was not asked for).

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
        index: Place of the element.
        returned: What the custom gradient returned; null if that is not finite.
        derivative: The derivative, by central differences of which two step sizes agree.
        automatic: What TensorFlow makes of the forward computation without the custom gradient; null if it cannot,
            or if that is not finite.
    """

    index: tuple[int, ...]
    returned: float | None
    derivative: float
    automatic: float | None


@dataclass(frozen=True, slots=True)
class InputCheck:
    """A custom gradient with respect to one input, beside the derivative.

    Attributes:
        input: Which input of the op.
        shape: Of the input, -1 where unknown; null if not even the rank is known.
        returned_shape: Of what was returned; null if nothing was, or the rank is unknown.
        error_share: Norm of what is returned too much or too little, over the norm of the derivative, where that
            is not zero; null if TensorFlow cannot differentiate the forward computation.
        ratio: What was returned, over the derivative, if that is the same number for all elements.
        samples: The elements that differ most.
    """

    input: int
    shape: tuple[int, ...] | None
    returned_shape: tuple[int, ...] | None
    error_share: float | None
    ratio: float | None
    samples: tuple[GradientSample, ...]


@dataclass(frozen=True, slots=True)
class GradientCheck:
    """A custom gradient of the user's own, looked at in one step with the gradient that arrived there.

    Attributes:
        op: Index in `Trace.ops`.
        function: What the user calls the function that has it; empty if unknown.
        source: Index in `Trace.sources` of the line where the gradient function begins; null if unknown.
        forward: Types of the ops inside, each once.
        identity: Whether its result is its input, element by element.
        response: How it answers to the gradient that it is given.
        inputs: The inputs that were compared.
        problem: Why nothing was compared, or what the gradient function raised; empty if nothing was in the way.
    """

    op: int
    function: str
    source: int | None
    forward: tuple[str, ...] = ()
    identity: bool = False
    response: Response = "unknown"
    inputs: tuple[InputCheck, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """A name scope that is a layer.

    Attributes:
        scope: The scope's full name, such as `functional_1/dense_1`.
        name: The layer's own name, such as `dense`.
        type: Class of the layer, such as `Dense`.
    """

    scope: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Input:
    """A floating tensor that the step was given.

    Attributes:
        name: What its giver calls it: `x`, `y` and `sample_weight` for Keras, else the parameter's name.
        row: Row of `Chunk.gradients` with the statistics of its values.
    """

    name: str
    row: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The structure of a training step, as one compilation of it saw it.

    Attributes:
        index: Number of the trace in its session, from zero.
        ops: In an order in which every edge that is not carried points back.
        variables: Every variable of the model, then others that the step read.
        targets: In the order of the calls.
        variable_gradients: For each target, every variable that was asked for or watched.
        tensor_gradients: For each target, every tensor on the way that was asked for.
        layers: The name scopes that are layers.
        sources: Lines of code that ops and targets refer to.
        notes: Facts about how this trace was recorded that limit what can be concluded from it.
        inputs: The batch.
        whole: Whether the variables are all that the model has; false where the caller named those that matter.
        failure: What running the step raised, after it had been traced; empty if nothing.
        gradient_checks: The custom gradients; only `explain` compares them with the derivative.
    """

    index: int
    ops: tuple[Op, ...]
    variables: tuple[Variable, ...]
    targets: tuple[Target, ...]
    variable_gradients: tuple[VariableGradient, ...]
    tensor_gradients: tuple[TensorGradient, ...]
    layers: tuple[Layer, ...]
    sources: tuple[Source, ...]
    notes: tuple[str, ...]
    inputs: tuple[Input, ...] = ()
    whole: bool = True
    failure: str = ""
    gradient_checks: tuple[GradientCheck, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """One recording: from the construction of a recorder to its end.

    Attributes:
        format: Version of the schema it was written in.
        id: Milliseconds since the epoch when it began, as thirteen digits: sessions sort by it.
        tool: Version of tb_gradflow.
        tensorflow: Version of TensorFlow.
        keras: Version of Keras; empty without it.
        model: Name of the model; empty if there is none.
        expected: Patterns (fnmatch) of variables that are meant to get no gradient.
    """

    format: int
    id: str
    tool: str
    tensorflow: str
    keras: str
    model: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The numbers of one recorded step, as the recorder hands them to the log; steps become a `Chunk` there.

    Attributes:
        trace: Index of the trace.
        step: Optimizer step, from zero.
        wall_time: Seconds since the epoch.
        losses: The value of every target, unscaled; NaN and infinities as they were.
        gradients: Little-endian float32 `[rows, len(GRADIENT_STATISTICS)]`, unscaled; NaN in a row that this
            step did not measure.
        variables: Little-endian float32 `[variables, len(VARIABLE_STATISTICS)]`.
    """

    trace: int
    step: int
    wall_time: float
    losses: tuple[float, ...]
    gradients: bytes
    variables: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """The numbers of consecutive recorded steps, all of one trace.

    Attributes:
        trace: Index of the trace.
        steps: Optimizer steps, from zero, strictly increasing.
        wall_times: Seconds since the epoch, one a step.
        losses: For each step the value of every target, unscaled; NaN and infinities as they were.
        gradients: Little-endian float32 `[steps, rows, len(GRADIENT_STATISTICS)]`, unscaled; NaN in a row
            that this step did not measure.
        variables: Little-endian float32 `[steps, variables, len(VARIABLE_STATISTICS)]`.
    """

    trace: int
    steps: tuple[int, ...]
    wall_times: tuple[float, ...]
    losses: tuple[tuple[float, ...], ...]
    gradients: bytes
    variables: bytes


@dataclass(frozen=True, slots=True)
class Run:
    """All that one log holds of one session.

    Attributes:
        session: How it was recorded.
        traces: By index.
        chunks: By first step.
    """

    session: Session
    traces: tuple[Trace, ...]
    chunks: tuple[Chunk, ...]
