"""The records of a log: measurements of one training, never conclusions about it.

A run holds *traces* (the structure of the training step, once per compiled version of it) and *chunks* (the numbers of
consecutive recorded steps). Everything here is immutable and survives `codec` unchanged. The parts of a trace are
defined in `graph`, `answers` and `terms`, and can be imported from this module too. The browser's
`frontend/src/record.ts` is generated from these.
"""

from __future__ import annotations

from dataclasses import dataclass

from tb_gradflow.record.answers import Clip as Clip
from tb_gradflow.record.answers import Deferred as Deferred
from tb_gradflow.record.answers import DroppedMask as DroppedMask
from tb_gradflow.record.answers import GradientCheck as GradientCheck
from tb_gradflow.record.answers import GradientSample as GradientSample
from tb_gradflow.record.answers import HowLost as HowLost
from tb_gradflow.record.answers import InputCheck as InputCheck
from tb_gradflow.record.answers import LossScale as LossScale
from tb_gradflow.record.answers import Movement as Movement
from tb_gradflow.record.answers import Optimizer as Optimizer
from tb_gradflow.record.answers import Outcome as Outcome
from tb_gradflow.record.answers import Override as Override
from tb_gradflow.record.answers import Replaced as Replaced
from tb_gradflow.record.answers import Response as Response
from tb_gradflow.record.answers import Target as Target
from tb_gradflow.record.answers import TensorGradient as TensorGradient
from tb_gradflow.record.answers import VariableGradient as VariableGradient
from tb_gradflow.record.experiments import ChangedGradient as ChangedGradient
from tb_gradflow.record.experiments import Influence as Influence
from tb_gradflow.record.experiments import Intervention as Intervention
from tb_gradflow.record.experiments import LineSearch as LineSearch
from tb_gradflow.record.experiments import MovedWeights as MovedWeights
from tb_gradflow.record.experiments import Reaction as Reaction
from tb_gradflow.record.experiments import Slope as Slope
from tb_gradflow.record.experiments import Spike as Spike
from tb_gradflow.record.experiments import SpikeTrial as SpikeTrial
from tb_gradflow.record.graph import COMPILED_EARLY as COMPILED_EARLY
from tb_gradflow.record.graph import EAGER as EAGER
from tb_gradflow.record.graph import PYTHON as PYTHON
from tb_gradflow.record.graph import SNAPSHOT as SNAPSHOT
from tb_gradflow.record.graph import BatchChange as BatchChange
from tb_gradflow.record.graph import BatchFit as BatchFit
from tb_gradflow.record.graph import Constant as Constant
from tb_gradflow.record.graph import Descent as Descent
from tb_gradflow.record.graph import Edge as Edge
from tb_gradflow.record.graph import Given as Given
from tb_gradflow.record.graph import Kept as Kept
from tb_gradflow.record.graph import Layer as Layer
from tb_gradflow.record.graph import MetricTrial as MetricTrial
from tb_gradflow.record.graph import Op as Op
from tb_gradflow.record.graph import Passage as Passage
from tb_gradflow.record.graph import Passes as Passes
from tb_gradflow.record.graph import Source as Source
from tb_gradflow.record.graph import Tensor as Tensor
from tb_gradflow.record.graph import Trained as Trained
from tb_gradflow.record.graph import Trial as Trial
from tb_gradflow.record.graph import TrialNorm as TrialNorm
from tb_gradflow.record.graph import Trials as Trials
from tb_gradflow.record.graph import Variable as Variable
from tb_gradflow.record.terms import COSINES_IN_ROW as COSINES_IN_ROW
from tb_gradflow.record.terms import Term as Term
from tb_gradflow.record.terms import TermCosines as TermCosines
from tb_gradflow.record.terms import TermGradient as TermGradient
from tb_gradflow.record.terms import TermKind as TermKind
from tb_gradflow.record.terms import TermTensor as TermTensor
from tb_gradflow.record.values import DataRow as DataRow
from tb_gradflow.record.values import Example as Example
from tb_gradflow.record.values import GradientRows as GradientRows
from tb_gradflow.record.values import KeptNumber as KeptNumber
from tb_gradflow.record.values import OpValue as OpValue
from tb_gradflow.record.values import Rows as Rows
from tb_gradflow.record.values import StepValues as StepValues
from tb_gradflow.record.values import WeightsBefore as WeightsBefore

FORMAT = 1
"""Version of everything in this module. Every change increments it, and adds an upgrader and a sample log."""

GRADIENT_STATISTICS = ("norm", "max_abs", "mean_abs", "zero_fraction", "nan_count", "inf_count")
"""Columns of `Chunk.gradients`. The first three cover the finite elements; they are 0 if there are none."""

MOVEMENT_STATISTICS = ("zeros", "moved", "remembered", "unmoved", "rounded", "rate")
"""Columns of the rows of `Chunk.gradients` that belong to `Movement`s: numbers of elements of a variable, and the
learning rate. The elements for which the optimizer got a gradient of exactly zero; those of them that the step changed;
those of these for which the optimizer has state from earlier gradients; the elements that the step did not change
although their gradient is finite and not zero; those of them whose update would have been smaller than the spacing of
numbers there. NaN if not known."""

RANGE_STATISTICS = ("none", "none", "smallest", "largest", "none", "none")
"""Columns of those rows of `Chunk.gradients` that `ValueRange`s name: over the finite elements, NaN if there are none.
The others are 0, so that no norm and no count is seen there by code that looks at all rows."""

OUTPUT_LIMITS = ((0.0, 1.0), (-1.0, 1.0))
"""Between which values most activations that have limits are: a sigmoid and a tanh. Those of a ReLU and of an ELU are
the lower ones."""

BEYOND_STATISTICS = ("none", "none", "below", "above", "none", "none")
"""Columns of those rows of `Chunk.gradients` that `ValueRange.beyond` names: what a squared error is at least for
predictions that are not below a limit, or not above it, as a part of the variance of the labels. The others are 0 as in
`RANGE_STATISTICS`."""

PASSED_STATISTICS = ("none", "none", "norm", "sum", "none", "none")
"""Columns of those rows of `Chunk.gradients` that `PassedValue`s name: the L2 norm and the sum of the finite elements;
of a tensor with more than 4096 elements, of about as many at equal distances. The others are 0 as in
`RANGE_STATISTICS`."""

CLIP_STATISTICS = ("none", "none", "before", "after", "none", "none")
"""Columns of those rows of `Chunk.gradients` that `Clip`s name: the norm of the gradients that are clipped, all of them
together, and of what is left. NaN if it is not known, or not finite. The others are 0 as in `RANGE_STATISTICS`."""

LOSS_SCALE_STATISTICS = ("none", "none", "scale", "updates", "none", "none")
"""Columns of those rows of `Chunk.gradients` that `LossScale`s name: the scale before the step, and how many updates
the optimizer has applied until after it; it skips a step whose gradients are not finite. The others are 0 as in
`RANGE_STATISTICS`."""

VARIABLE_STATISTICS = ("weight_norm", "update_norm", "nonfinite_before", "nonfinite_after")
"""Columns of `Chunk.variables`: L2 norms of the value after the step and of its change in the step, both over the
finite elements; the numbers of elements that were NaN or infinite before the step, and after it. NaN if not known: the
variable is not a floating one, or the log is older than the column.
"""


@dataclass(frozen=True, slots=True)
class Input:
    """A floating tensor that was passed to the step.

    Attributes:
        name: Its name for the caller: `x`, `y` and `sample_weight` for Keras, else the parameter's name.
        row: Row of `Chunk.gradients` with the statistics of its values.
    """

    name: str
    row: int


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The input range of a function that is not finite everywhere, such as a logarithm, or of a masked softmax; or the
    range of labels, or another part of the batch, that a result of the model is compared with; or of the floating part
    of the batch that the indices of a lookup are made of.

    Attributes:
        op: Index in `Trace.ops`.
        input: Which of its inputs; for a divisor, the range is that of the magnitudes.
        row: Row of `Chunk.gradients` with its `RANGE_STATISTICS`.
        beyond: For labels, one more row for each of `OUTPUT_LIMITS`, with `BEYOND_STATISTICS`; none if not known.
    """

    op: int
    input: int
    row: int
    beyond: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PassedValue:
    """A floating input of a matrix product, a convolution, a pooling or a cross-entropy in the forward pass.

    Attributes:
        op: Index in `Trace.ops`.
        input: Which of its inputs.
        row: Row of `Chunk.gradients` with its `PASSED_STATISTICS`.
    """

    op: int
    input: int
    row: int


@dataclass(frozen=True, slots=True)
class Raised:
    """The error that an op raised while a step ran.

    Attributes:
        op: Index in `Trace.ops`; -1 if it is not known, such as that of an op that raised when a step first ran it
            eagerly. If an op of a gradient raised, the op that is differentiated.
        type: The type of the op; empty if it is not known.
        source: Index in `Trace.sources` of the line that runs it; `None` if it is not known.
        api: See `Op`.
        error: The type of the error, and its first line.
        size: If the op was given an index that is outside of what it indexes: how many elements that has, counted from
            zero; `None` if it is another error.
        low: The smallest index that TensorFlow names then.
        high: The largest one.
    """

    op: int
    type: str
    source: int | None
    api: str | None
    error: str
    size: float | None = None
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """The structure of one compilation of a training step.

    Attributes:
        index: Number of the trace in its session, from zero.
        ops: Ordered so that every edge that is not carried points to an earlier op.
        variables: Every variable of the model, then others that the step read.
        targets: In the order of the calls.
        variable_gradients: For each target, every variable that was requested or watched.
        tensor_gradients: For each target, every tensor on the path that was requested.
        layers: The name scopes that are layers.
        sources: Lines of code that ops and targets refer to.
        notes: Facts about how this trace was recorded that limit what can be concluded from it.
        inputs: The tensors of the batch.
        whole: Whether `variables` are all variables of the model; false if the caller listed the relevant ones.
        failure: The error that the step raised after it was traced; empty if none.
        gradient_checks: The custom gradients; only `explain` compares them with the derivative.
        unscaled: Whether an optimizer divided gradients by a loss scale by which no loss had been multiplied; not known
            in older logs.
        optimizers: The optimizers that applied gradients; none in older logs.
        movements: What moved the variables whose gradient was applied; none in older logs.
        overrides: The blocks of `gradient_override_map` that were in force; none in older logs.
        dropped_masks: The layers that do not propagate a mask, and the masked tensors that go into no layer; none in
            older logs.
        passages: The parts of the user's files that edits are made from; none in older logs.
        trials: The edits that were tried: `StoredRun` adds those of `Trials`; some older logs hold them here.
        fits: Whether a batch can be learned: `StoredRun` adds those of `Trials`.
        metrics: What accuracies say: likewise.
        terms: The terms of losses that are sums, if their gradients were measured; none in older logs.
        term_gradients: The gradients of each of these terms.
        term_cosines: The angles between these gradients.
        deferred: The variables whose gradient the step adds up, or which it updates only under a condition; none in
            older logs.
        replaced: The variables whose update the step replaces by another variable's value; none in older logs.
        term_tensors: The gradient of each term at the outputs of layers; none in older logs.
        ranges: Of inputs of functions that are not finite everywhere and of masked softmaxes, and of labels.
        passed: Values of the forward pass; none in older logs.
        clips: What clips gradients before they are applied; none in older logs.
        loss_scales: The loss scales that optimizers adapt; none in older logs.
        raised: What an op of it raised while it ran; none in older logs.
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
    unscaled: bool = False
    optimizers: tuple[Optimizer, ...] = ()
    movements: tuple[Movement, ...] = ()
    overrides: tuple[Override, ...] = ()
    dropped_masks: tuple[DroppedMask, ...] = ()
    passages: tuple[Passage, ...] = ()
    trials: tuple[Trial, ...] = ()
    fits: tuple[BatchFit, ...] = ()
    metrics: tuple[MetricTrial, ...] = ()
    terms: tuple[Term, ...] = ()
    term_gradients: tuple[TermGradient, ...] = ()
    term_cosines: tuple[TermCosines, ...] = ()
    deferred: tuple[Deferred, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    term_tensors: tuple[TermTensor, ...] = ()
    ranges: tuple[ValueRange, ...] = ()
    passed: tuple[PassedValue, ...] = ()
    clips: tuple[Clip, ...] = ()
    loss_scales: tuple[LossScale, ...] = ()
    raised: tuple[Raised, ...] = ()


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
        seed: TensorFlow's global seed when the recording began; null if there is none, and in older logs.
    """

    format: int
    id: str
    tool: str
    tensorflow: str
    keras: str
    model: str
    expected: tuple[str, ...]
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The statistics of one recorded step, as the recorder passes them to the log, where steps form a `Chunk`.

    Attributes:
        trace: Index of the trace.
        step: Optimizer step, from zero.
        wall_time: Seconds since the epoch.
        losses: The value of every target, unscaled; NaN and infinities are kept.
        gradients: Little-endian float32 `[rows, len(GRADIENT_STATISTICS)]`, unscaled; NaN in a row that this
            step did not measure.
        variables: Little-endian float32 `[variables, len(VARIABLE_STATISTICS)]`.
        values: Forward values and experiments; null if there are none, as in most steps.
    """

    trace: int
    step: int
    wall_time: float
    losses: tuple[float, ...]
    gradients: bytes
    variables: bytes
    values: StepValues | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """The statistics of consecutive recorded steps, all of one trace.

    Attributes:
        trace: Index of the trace.
        steps: Optimizer steps, from zero, strictly increasing.
        wall_times: Seconds since the epoch, one for each step.
        losses: For each step the value of every target, unscaled; NaN and infinities are kept.
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
    """The content of one session of a log.

    Attributes:
        session: How it was recorded.
        traces: By index.
        chunks: By first step.
    """

    session: Session
    traces: tuple[Trace, ...]
    chunks: tuple[Chunk, ...]
