"""A training step whose ops run as the program calls them, and that also returns its gradients' statistics: it runs
under `patches.watching`, and what is measured is added to its outputs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.capture.collector import Collector, Scope
from tb_gradflow.trace.capture.gradient_clips import Clipping, clippings_of
from tb_gradflow.trace.capture.optimizer_updates import Applied, Moved
from tb_gradflow.trace.capture.passed_values import passed_values
from tb_gradflow.trace.capture.patches import gives_way, watching
from tb_gradflow.trace.capture.term_gradients import TermGradients
from tb_gradflow.trace.eager.shadow_symbols import ShadowSymbols
from tb_gradflow.trace.experiments.answers import Questions, answers
from tb_gradflow.trace.experiments.eager_step import last_step_of
from tb_gradflow.trace.experiments.loss_alone import loss_of
from tb_gradflow.trace.graph.build_trace import Numbered
from tb_gradflow.trace.graph.variables import (
    Owned,
    Variables,
    has_one_shape,
    is_floating,
    local,
)
from tb_gradflow.trace.numerics.clipping import of_scale
from tb_gradflow.trace.numerics.statistics import (
    VARIABLE_COLUMNS,
    movement_statistics,
    variable_statistics,
)
from tb_gradflow.trace.numerics.statistics_table import Block, Row
from tb_gradflow.trace.protection.beside import beside
from tb_gradflow.trace.protection.foreign import faults, suppressed
from tb_gradflow.trace.protection.functions import faults_go_to
from tb_gradflow.trace.source.other_methods import only_elsewhere
from tb_gradflow.trace.step.forward_values import data_of, examples_of, forward_values, has_nonfinite
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.more_rows import ClipRows, MoreRows, trace_with
from tb_gradflow.trace.step.named_inputs import Named, NameInputs, arguments_of
from tb_gradflow.trace.step.observation import seen_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import weights_before
from tb_gradflow.trace.step.value_ranges import value_ranges
from tb_gradflow.trace.tf_internals.raised_by import is_index_outside

OnTrace = Callable[[Trace, BaseException | None], None]


class InstrumentedStep:
    """Wraps `step`, a function of a batch, so that it returns `(outputs, measurements)`.

    `variables` returns those of the model when a step begins; `on_trace` is called with each finished trace, and with
    the exception if the user's step raised one. Everything the measurements need is derived from tensors of the step:
    nothing here runs between steps. `on_fault` is called if the recorder itself fails; the step then goes on to its end
    without measurements. Without `on_fault` the fault is raised.

    Attributes:
        variables, settings, on_fault: See above.
        inputs: Names the arguments of the step.
        questions: The variables that are moved.
        before: Of the step that ran last: see `OpenStep`.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        variables: Callable[[], Variables],
        settings: Settings,
        on_trace: OnTrace,
        inputs: NameInputs | None = None,
        on_fault: Callable[[Exception], None] | None = None,
    ) -> None:
        self.inputs = inputs if inputs is not None else arguments_of(step)
        self.variables = variables
        self.settings = settings
        self.on_fault = on_fault or _raised
        self._step = step
        self._on_trace = on_trace
        self.questions = Questions()
        self.before: list[tuple[Any, Any]] = []
        self._traces = 0

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Measured]:
        """What the step returns, and what it measured: nothing if the recorder has failed."""
        found: list[Measured] = []
        outputs = beside(
            lambda: self._step(*args, **kwargs), lambda: self._observed(found.append, args, kwargs), self.on_fault
        )
        return outputs, found[0] if found else {}

    @contextlib.contextmanager
    def _observed(self, found: Callable[[Measured], None], args: Any, kwargs: Any) -> Iterator[None]:
        opened = OpenStep(self)
        try:
            try:
                yield
            except BaseException as error:
                opened.abandon(error)
                raise
            found(opened.closed(args, kwargs))
            self.before = opened.before
        finally:
            opened.patches.close()  # even if something fails above

    def opened(self) -> OpenStep | None:
        """Begins a step that is not a function: everything that this thread runs until it is closed. None if that
        fails."""
        try:
            opened = OpenStep(self)
        except faults() as fault:
            self.on_fault(fault)
            return None
        gives_way(opened.give_way)
        return opened

    def tell(
        self, collector: Collector, more: MoreRows, error: BaseException | None, *, with_values: bool = False
    ) -> Numbered:
        """A step is over: reports its structure, with the number of its trace."""
        index = self._traces
        self._traces += 1
        root = collector.root if with_values else None
        numbered = trace_with(
            more, seen_in(collector), collector.applied, index, keep_source=self.settings.source, root=root
        )
        self._on_trace(numbered.trace, error)
        return numbered


class OpenStep:
    """One step, from here until it is closed.

    Attributes:
        collector: Observes it.
        patches: The replacements of functions in the meantime.
        is_lost: Whether its observation has ended before it was over.
        before: When it is closed: the variables that it has read, and the values that they had when it began.
    """

    def __init__(self, step: InstrumentedStep) -> None:
        variables, settings = step.variables(), step.settings
        # An op that runs once its operands are there rounds in the same way, whoever else reads them.
        scope = Scope(settings.tensors, exact=False)
        terms = [TermGradients(exact=False)] if settings.terms else []
        self._symbols = ShadowSymbols(variables, settings.checks)
        self.collector = Collector(variables, self._symbols, scope, terms)
        self.collector.keeps_gradients = settings.checks is not None  # `explain` shows the rows of the batch
        self.is_lost = False
        self.before: list[tuple[Any, Any]] = []
        self._step = step
        self._before = [item.variable.read_value() if is_floating(item) else None for item in variables]
        self._thread = threading.current_thread()
        with contextlib.ExitStack() as opened:
            opened.enter_context(faults_go_to(self.collector.fail))
            # A replica is refused when it requests a gradient.
            opened.enter_context(watching(self.collector, lambda number: self.collector))
            opened.enter_context(self.collector.recording())
            self.patches = opened.pop_all()

    def give_way(self) -> None:
        """Another thread cannot wait for this step any longer. It is over if its own thread has ended."""
        self.is_lost = self._thread.is_alive()
        self.patches.close()

    def closed(self, args: Any, kwargs: Any) -> Measured:
        """The step, which has these arguments, is over: its statistics; none if the recorder failed."""
        self.patches.close()
        try:
            if self.collector.fault is not None:
                raise self.collector.fault
            return self._measured(args, kwargs)
        except faults() as fault:
            self._step.on_fault(fault)
            return {}
        finally:
            self._forget()

    def abandon(self, error: BaseException | None = None) -> None:
        """The step does not complete. If that is the user's error, what was observed until then is reported, and
        nothing replaces that error."""
        self.patches.close()
        is_of_interest = error is not None and (self.collector.calls or is_index_outside(error))
        if is_of_interest and self.collector.fault is None:
            with suppressed():
                self.collector.finish()
                self._step.tell(self.collector, MoreRows(), error)
        self._forget()

    def _forget(self) -> None:
        self.collector.forget()
        self._before = []

    def _measured(self, args: Any, kwargs: Any) -> Measured:
        collector, settings = self.collector, self._step.settings
        given = self._step.inputs(args, kwargs)
        collector.finish()
        more = self._more_rows(given)
        with_values = _broke(collector, [row for _, row in more.inputs])
        numbered = self._step.tell(collector, more, None, with_values=with_values)
        losses = [call.loss for call in collector.calls if call.rows.is_measured]
        measured = {
            "trace": tf.constant(numbered.trace.index, tf.int32),
            "losses": tf.stack(losses) if losses else tf.zeros([0]),
            "gradients": collector.rows.take(),
            "variables": _norms(collector.variables, [*self._before, *self._met()]),
            **collector.more(),
        }
        if with_values:
            measured |= forward_values(collector.calls, collector.symbols, numbered, (args, kwargs))
            measured |= data_of((args, kwargs))
            measured |= examples_of(given) if settings.examples else {}
        known: Measured = {name: value.numpy() for name, value in measured.items()}
        before = [*self._before, *self._met()]
        self.before = [
            (item.variable, value) for item, value in zip(collector.variables, before, strict=True) if value is not None
        ]
        if numbered.trace.index == 0:
            known["weights"] = tuple(
                weights_before(number, value) for number, value in enumerate(before) if _is_whole(value)
            )
        return known if with_values else known | self._experiments(numbered, known)

    def _experiments(self, numbered: Numbered, measured: Measured) -> Measured:
        """What is measured in addition if variables are moved: only reactions, because what Python has computed or
        decided stays as it was."""
        new, _ = self._step.questions.new(numbered.trace, measured["gradients"])
        if not new:
            return {}
        symbols, calls = self._symbols, self.collector.calls
        known = {target: loss_of(call, symbols.symbol) for target, call in enumerate(calls)}
        losses = {target: loss for target, loss in known.items() if loss is not None}
        was = {target: float(calls[target].loss) for target in losses}
        variables = self.collector.variables
        found = answers(new, losses, variables, lambda: last_step_of(symbols.shadow), was, numbered, measured)
        return found | {"influences": tuple(each for each in found["influences"] if each.reacts)}

    def _more_rows(self, given: Named) -> MoreRows:
        collector, before, block = self.collector, self._before, Block()
        collector.rows.append(block)
        is_all = self._step.settings.tensors == "all"
        moved = collector.moved(len(before))
        more = MoreRows(
            [(name, block.measure(tensor)) for name, tensor in given],
            [(each, block.add(_movement(each, before[each.variable]))) for each in moved],
            value_ranges(collector, block, exact=False) if is_all else (),
            passed_values(collector, block, exact=False) if is_all else (),
            list(_clips(moved, block)),
            list(_scales(collector.applied, block)),
        )
        block.stack()
        return more

    def _met(self) -> list[Any]:
        """The initial values of the variables that an eager step has read; for the first step of a loop, of all its
        variables. The values that the step read still exist."""
        collector, known = self.collector, len(self._before)
        found: dict[int, Any] = {}
        if known < len(collector.variables):
            for op in collector.flattener(collector.root).ops:
                # `ResourceGather` reads some rows only.
                whole = op.type == "ReadVariableOp" and bool(op.tensors)
                if whole and op.reads is not None and op.reads >= known and op.reads not in found:
                    found[op.reads] = collector.symbols.actual(op.tensors[0])
        return [found.get(number) for number in range(known, len(collector.variables))]


def _broke(collector: Collector, inputs: Sequence[Row]) -> bool:
    """Whether a loss, a gradient or the batch of an eager step is not finite. Its values still exist, so they need not
    be computed again as for a compiled step."""
    eager = tf.__internal__.EagerTensor
    losses = [call.loss.numpy() for call in collector.calls if isinstance(call.loss, eager)]
    rows = [call.rows.tensor.numpy() for call in collector.calls if isinstance(call.rows.tensor, eager)]
    rows += [row.block.tensor.numpy()[row.place : row.place + 1] for row in inputs]
    return not all(np.all(np.isfinite(loss)) for loss in losses) or any(map(has_nonfinite, rows))


def _is_whole(value: Any) -> bool:
    """Whether the value of a variable before the step is known, and can be summed."""
    return value is not None and value.dtype.is_floating


def _movement(moved: Moved, before: Any) -> Any:
    """float32 `[6]`: the effect of an update on one variable."""
    given, applied = moved.given, moved.applied
    return movement_statistics(
        given.gradient,
        before,
        given.variable.read_value(),
        given.remembers,
        applied.rate,
        is_proportional=applied.is_proportional,
        is_scaled=moved.is_scaled,
    )


def _clips(moved: Sequence[Moved], block: Block) -> Iterator[tuple[Clipping, Row]]:
    """The clips of an eager step, with their rows."""
    if clippings := clippings_of(moved):
        measured = ClipRows(clippings, Block(), lambda tensor: tensor)
        divisors = [each.moved[0].applied.divisor for each in clippings]
        rows = measured.rows(measured.block.tensor.numpy(), [1.0 if each is None else float(each) for each in divisors])
        for each, row in zip(clippings, rows, strict=True):
            yield each, block.add(tf.constant(row, tf.float32))


def _scales(applied: Sequence[Applied], block: Block) -> Iterator[tuple[int, Row]]:
    for number, each in enumerate(applied):
        if each.scale is not None:
            updates = float("nan") if each.updates is None else float(each.updates.read_value())
            yield number, block.add(tf.constant(of_scale(float(each.scale), updates), tf.float32))


def _raised(fault: Exception) -> None:
    raise fault


def _norms(variables: Variables, before: list[Any]) -> Any:
    """float32 `[variables, 4]`: the change of each value since `before`."""
    unknown = tf.fill([VARIABLE_COLUMNS], float("nan"))
    rows = [unknown] * len(variables)
    for number, item in enumerate(variables):
        if is_floating(item):
            # A variable that was created or first read during this step has no value before it.
            known = before[number] if number < len(before) and has_one_shape(item) else None
            rows[number] = variable_statistics(item.variable.read_value(), known)
    return tf.stack(rows) if rows else tf.zeros([0, VARIABLE_COLUMNS])


def owned_variables(model: Any) -> Variables:
    """The variables of a Keras model, by their paths, without those of its optimizer and metrics."""

    def of_metrics() -> list[Any]:
        return [variable for metric in model.metrics for variable in metric.variables]

    def owned() -> Iterator[Owned]:
        trainable = {id(variable) for variable in model.trainable_variables}
        metrics = {id(variable) for variable in of_metrics()}
        elsewhere: dict[int, str] = {}
        with suppressed():  # it uses objects of the user's, which may return anything
            elsewhere = {id(each): method for part, method in only_elsewhere(model) for each in part}
        for variable in model.variables:
            if id(variable) not in metrics:
                yield Owned(
                    local(variable),
                    variable.path,
                    id(variable) in trainable,
                    tracked=True,
                    elsewhere=elsewhere.get(id(variable), ""),
                )

    def ignored() -> list[Any]:
        slots = [variable for optimizer in _optimizers(model) for variable in optimizer.variables]
        return [local(variable) for variable in (*of_metrics(), *slots)]

    variables = Variables(owned, ignored)
    # Its own `train_step` may call its parts alone.
    variables.meet(model)
    return variables


def _optimizers(model: Any) -> list[Any]:
    import keras

    return [value for value in vars(model).values() if isinstance(value, keras.optimizers.Optimizer)]
