"""The parts of the forward graph of a training step: lines of code, tensors, ops, variables, layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Passes = Literal["yes", "none", "not_differentiable", "unregistered", "dtype", "error", "state", "unknown"]
"""Whether an op propagates a gradient to one of its inputs, as TensorFlow itself answers:

yes                 its gradient function returns one
none                it has a gradient function, and that returns None for this input
not_differentiable  the op type is registered as not differentiable
unregistered        no entry in the gradient registry: a request raises LookupError
dtype               the tensor is not floating (integer, bool, string): the tape ignores it
error               the gradient function raised an error
state               not a tensor at all: a value written to a variable, and read back from it
unknown             not requested
"""


PYTHON = "Python"
"""Type of a pseudo-op: Python code that took a value out of TensorFlow, some of which came back as a constant. `api` is
the exit, such as `.numpy()` or `np.sqrt`.
"""

SNAPSHOT = "Snapshot"
"""Type of a pseudo-op: a tensor from before the step, whose value was found to be computed from that of a variable.
`api` is the computation, such as `tf.exp`; null if it has no name.
"""

COMPILED_EARLY = "tf.function"
"""`api` of a snapshot of initial values, in a function that was compiled while Keras built the model."""

EAGER = "Eager"
"""Type of a pseudo-op: the whole unrecorded computation of an eager loss."""


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code.

    Attributes:
        file: Path, relative to the working directory or to the directory from which Python imports it. Older logs have
            other paths.
        line: Line number, from one.
        function: Name of the function the line is in.
        code: The line itself, stripped; if it is part of a statement over several lines, the whole statement. Empty if
            the file could not be read.
    """

    file: str
    line: int
    function: str
    code: str


@dataclass(frozen=True, slots=True)
class TrialNorm:
    """The norm of a variable's gradient after an edit."""

    variable: str
    norm: float


Kept = Literal["forward", "shape", "checkpoint"]
"""What an edit leaves as it was: the loss of the first step, to rounding; the shapes of the targets and of what the
layers return; the names and shapes of the variables."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Some steps on one batch with an edit, and without it, rolled back.

    Attributes:
        steps: Their number.
        loss: With the edit: the first, and the one after the last step; null if it was not finite.
        without: The same without the edit; null as well if the program could not be trained without it.
        curve: The loss of each step with the edit, and the last one again; null if it was not finite. None in older
            logs.
        curve_without: The same without the edit.
    """

    steps: int
    loss: tuple[float | None, ...]
    without: tuple[float | None, ...]
    curve: tuple[float | None, ...] = ()
    curve_without: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of an edit that was applied in memory on a batch of the training, and rolled back.

    Attributes:
        file: Of the edit, as are the next three.
        line: Number of the first line that it replaces, from one.
        end_line: Number of the last one.
        after: The new lines.
        works: As of `Tried`, as are the next three.
        loss: The loss before and after the edit; null if it was not finite or the step did not complete.
        gradient_norm: For each variable of the finding that gets a gradient with it.
        with_others: Whether it works only together with the edits of other findings.
        trained: As of `Tried`, as are the last two of these; none in older logs.
        step: The step whose batch and weights were used; in older logs the first one.
        not_tried: As of `Finding`: it was not run, for this reason; then the other results say nothing.
    """

    file: str
    line: int
    end_line: int
    after: str
    works: bool
    loss: tuple[float | None, ...] = ()
    gradient_norm: tuple[TrialNorm, ...] = ()
    with_others: bool = False
    trained: Trained | None = None
    not_trained: str = ""
    keeps: tuple[Kept, ...] = ()
    step: int = 0
    not_tried: str = ""


LEARNED = 0.5
"""A batch is learned if this part of its loss is left, or less. A model that only learns the mean of the targets leaves
more, unless it began far from it."""

BatchChange = Literal["nothing", "inputs_alike", "targets_scaled"]
"""What was different in a batch: nothing; each row had the inputs of the first one; or the targets had been brought to
a mean of zero and a standard deviation of one."""


@dataclass(frozen=True, slots=True)
class Descent:
    """The same batch for some steps, with the same random numbers in each, rolled back.

    Attributes:
        by: own: the optimizer of the program. adam: Adam.
        rate: The learning rate of Adam; null if the program's optimizer has its own.
        changed: What was different in the batch.
        losses: That of each step, and the one after the last; null if it was not finite.
    """

    by: Literal["own", "adam"]
    rate: float | None
    changed: BatchChange
    losses: tuple[float | None, ...]

    @property
    def first(self) -> float:
        """The first loss; NaN if it was not finite."""
        return float("nan") if not self.losses or self.losses[0] is None else self.losses[0]

    @property
    def best(self) -> float:
        """The least loss; NaN if none was finite."""
        return min((each for each in self.losses if each is not None), default=float("nan"))

    @property
    def left(self) -> float:
        """Which part of the first loss is left at best; 1 if that says nothing, as of one that is not positive."""
        return self.best / self.first if self.first > 0 else 1.0


@dataclass(frozen=True, slots=True)
class BatchFit:
    """Whether a model can learn one batch.

    Attributes:
        step: The step whose batch and weights were used.
        rows: Number of rows of the batch; -1 if not known.
        descents: What was tried.
        began: The mean of the first losses that were recorded; null if there is only this step.
        ended: That of the last ones before this step; null likewise.
    """

    step: int
    rows: int
    descents: tuple[Descent, ...]
    began: float | None = None
    ended: float | None = None


CERTAIN = 0.99
"""An accuracy that is less is not that of right predictions."""


@dataclass(frozen=True, slots=True)
class MetricTrial:
    """An accuracy of Keras's that a model was compiled with, computed for made-up predictions.

    Attributes:
        name: Its name.
        right: For predictions without an error: those for which the loss is least.
        close: For predictions that name the right classes by a narrow margin; as `right` if there is no such margin.
        wrong: For the predictions of `right`, each for the next row.
        instead: A metric that is 1 for both kinds of right predictions and less for wrong ones, as it is written; empty
            if there is none.
    """

    name: str
    right: float
    close: float
    wrong: float
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Trials:
    """What was tried in a session.

    Attributes:
        trials: The best first.
        fits: Of a step whose loss had not fallen, or on request; none in older logs.
        metrics: Likewise.
    """

    trials: tuple[Trial, ...]
    fits: tuple[BatchFit, ...] = ()
    metrics: tuple[MetricTrial, ...] = ()


@dataclass(frozen=True, slots=True)
class Passage:
    """A top-level statement of the user's source, unchanged; edits are made from it.

    The log keeps statements that contain a line of `Trace.sources` or name a layer or variable of the trace, and the
    file's imports.

    Attributes:
        file: As of a `Source`.
        line: Number of its first line, from one; if it has a decorator, the decorator's.
        text: Its lines, without the last line break.
        after: The three lines after it, fewer at the end of the file: `git apply` needs them for a patch of the last
            lines.
    """

    file: str
    line: int
    text: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tensor:
    """An output of an op.

    Attributes:
        shape: Sizes, -1 where unknown until run time; null if not even the rank is known.
        dtype: TensorFlow's name, such as `float32`.
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
        passes: Whether the consumer propagates a gradient to this input.
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
class Given:
    """A floating input of an op that was left out: data, or a value computed only from data.

    Attributes:
        input: Which input of the op.
        shape: As of a `Tensor`.
    """

    input: int
    shape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Op:
    """One op of the forward graph, between a variable and a loss, or where the path to a loss ended.

    Functions are inlined: an op of a function's body is named `<call>/<op>`. Each output of an `If` and each loop
    variable of a `While` is a separate op with that type, whose inputs are the predicate and the branches' results, or
    the initial value, the condition and the body's result.

    Attributes:
        name: TensorFlow's name, unique in the trace; `/` separates name scopes.
        type: TensorFlow's op type, such as `MatMul`.
        inputs: In the op's order. Data inputs that were left out are not listed.
        outputs: In the op's order.
        source: Index in `Trace.sources` of the user's line that created it; null if none did.
        api: The function that this line called, such as `tf.sequence_mask`; null if unknown.
        reads: Index of the variable that it reads; null for most ops.
        writes: Index of the variable that it assigns; null for most ops.
        custom_gradient: Name of the gradient function that `tf.custom_gradient` or `gradient_override_map` used instead
            of the registered one; null for most ops.
        backward: Whether it was created while an inner gradient was computed on which the loss depends.
        data: Whether its value depends on data: the batch, captured values, random draws, or a table of numbers; null
            if not known.
        constants: Its inputs that are constants.
        input_count: Number of inputs, listed or not; null if not known.
        differentiable: Whether it propagates a gradient to any of them; null if not known.
        compiled: Whether it is inside a function that XLA compiles, while the step around it is not compiled by XLA.
        given: Its inputs that were left out and are not constants; none in older logs.
        updated: Whether the step had already updated the variable that it reads, for another loss; not known in older
            logs.
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
    given: tuple[Given, ...] = ()
    updated: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the step reads, or that the model owns.

    Attributes:
        name: Keras's `variable.path`, or `tf.Variable.name` without `:0`.
        shape: Sizes.
        dtype: TensorFlow's name.
        trainable: Whether its owner marks it as trainable.
        tracked: Whether the model lists it among its variables.
        computed: Whether it is not a variable but a tensor for which a gradient was requested.
        rebound: The attribute, as written in code, that held the variable and now holds a tensor; empty if there is
            none.
        made: Whether the step itself created it.
        written: The name in the user's code, such as `self.w`, of a variable that only has TensorFlow's default name;
            empty if it has another name, or if that is not known.
        elsewhere: The method of the model that uses it, such as `classify`, if the training step does not; empty if
            there is none.
        plain: Whether it is a `tf.Variable` that a layer of Keras 3 holds, but does not track.
        held: The frozen layer or model of Keras 2 that holds its layer, which is trainable itself while others in it
            are not; empty if there is none.
        in_dataset: Number of the line where a function of a dataset reads it, if no op of the step does; None if none
            does, or if no lines are kept.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    tracked: bool
    computed: bool = False
    rebound: str = ""
    made: bool = False
    written: str = ""
    elsewhere: str = ""
    plain: bool = False
    held: str = ""
    in_dataset: int | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """A name scope that is a layer.

    Attributes:
        scope: The scope's full name, such as `functional_1/dense_1`.
        name: The layer's own name, such as `dense`.
        type: Class of the layer, such as `Dense`.
        source: Index in `Trace.sources` of the user's line that called it first; null if none did, and in older logs.
    """

    scope: str
    name: str
    type: str
    source: int | None = None
