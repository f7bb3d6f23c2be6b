"""The steps of a training that the program compiles and runs itself: observed while they are traced, and recorded by
functions made from that trace."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.capture.collector import Collector, Scope
from tb_gradflow.trace.capture.instruments import Instrument
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.capture.term_gradients import TermGradients
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.engine.stack_space import with_stack_space
from tb_gradflow.trace.engine.switches import switch_of
from tb_gradflow.trace.engine.tracing import Onlooker, calls_noted, onlooking
from tb_gradflow.trace.experiments.answers import Questions
from tb_gradflow.trace.graph.build_trace import trace_of
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.nonfinite.guard import Caught
from tb_gradflow.trace.nonfinite.replayed_step import Replays
from tb_gradflow.trace.observed.forms import Forms, Told
from tb_gradflow.trace.observed.kept_step import KeptStep, kept_step, step_that_raised
from tb_gradflow.trace.observed.seen_again import observed_again, without_gradient
from tb_gradflow.trace.protection.foreign import faults, suppressed
from tb_gradflow.trace.protection.substitutes import Ours
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.source.kept_numbers import KeptNumbers
from tb_gradflow.trace.step.forward_values import is_broken
from tb_gradflow.trace.step.measurements import Measured, Measurements
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import Observation, observation_in, observed, seen_in
from tb_gradflow.trace.step.replicas import measured_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.workers import OF_ONE_WORKER, is_one_of_several

MOST_SPIKES = 3
"""So many steps of a training that are not usual are recorded, whatever the cadence: each takes a second or so."""

_MOST_IN_VAIN = 3
"""So often a step is run again whose gradients turn out to be finite."""

_STEPS_OF_EACH = 3
_FUNCTIONS = 5
"""A step may be compiled many times, for batches of different lengths: of so many functions the first steps are
recorded whatever that costs."""

OnTrace = Callable[[Trace, BaseException | None], None]
"""Called with the structure of a step before it is first recorded; or with that of one that raised while it was traced,
and the exception."""


class ObservedSteps:
    """Looks on while a program trains: see `engine.tracing.Onlooker`.

    Args:
        variables: Returns the model's variables when a trace begins.
        settings: What to record.
        inputs: Names the arguments of a step.
        on_trace: See `OnTrace`.
        on_fault: Called with a fault of the recorder.
        told: Returns the context in which a form of a function is made and first run, which may take long.
        counter: Returns a variable that each step increments; `None` if there is none.
        step: The name of a function that is recorded even if it takes no gradient; empty if there is none.

    Attributes:
        is_due: Whether the next step is recorded.
        has_recorded: Whether the last one was.
        is_rented: Whether it ran in its recorded form all the same.
        is_first: Whether it took longer than other recorded steps, as the first one of each function does.
        ago: To which step that belongs: 1 is the last one, 2 the one before.
        tells: Whether it is the first one that is not finite.
        given: The arguments of the step that runs, by position and by name.
        not_recorded: Why steps that were compiled when nobody looked on cannot be recorded; empty if they can, or there
            are none.
    """

    def __init__(
        self,
        variables: Callable[[], Variables],
        settings: Settings,
        inputs: NameInputs,
        on_trace: OnTrace,
        on_fault: Callable[[Exception], None],
        told: Told = contextlib.nullcontext,
        counter: Callable[[], Any] = lambda: None,
        *,
        step: str = "",
    ) -> None:
        self.ago = 1
        self.is_due = self.has_recorded = self.is_rented = self.is_first = self.tells = False
        self._variables = variables
        self._settings = settings
        self._inputs = inputs
        self._on_trace = on_trace
        self._told = told
        self._counter = counter
        self._traces = 0
        self._forms: dict[int, tuple[Any, Observation, Forms] | None] = {}
        self._numbers: dict[int, KeptNumbers] = {}
        self._last: tuple[Any, Observation, Forms] | None = None
        self._recorded = Counter[int]()
        self._questions = Questions()
        self._has_caught = False
        self._spikes = self._in_vain = 0
        self._was_finite = False
        self._replays: dict[int, Replays] = {}
        self._step = step
        self._without_gradients: Observation | None = None
        self._observation: Observation | None = None
        self._raising: Collector | None = None
        self.given: tuple[Sequence[Any], Mapping[str, Any]] = (), {}
        self.not_recorded = ""
        self._is_unseen = True  # until a step has run
        self._is_in_dataset = False
        self.failed = on_fault

    @contextlib.contextmanager
    def looking_on(self, onlooker: Onlooker | None = None) -> Iterator[None]:
        """The context to run a step in. `onlooker` is told in its place, and tells it."""
        with onlooking(onlooker or self):
            if not self._is_unseen or self.not_recorded:
                yield
                return
            with calls_noted() as called:
                yield
            self._is_unseen = False
            self.not_recorded = self._seen_again(called)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        # Kept until all functions that it is about have been reported to `traced`.
        self._observation = observation = Observation(self._collector)
        with observed(observation, self._raised):
            yield
        self._without_gradients = None if observation.graphs else observation

    def _collector(self, replica: int, known: Mapping[str, Known] | None = None) -> Collector:
        symbols = Symbols(f"replica_{replica}" if replica else "", known)
        return Collector(self._variables(), symbols, Scope(self._settings.tensors), self._instruments())

    def traced(self, function: Any) -> None:
        observation = observation_in(function)
        # TensorFlow also traces functions of its own, such as one that initializes variables.
        if observation is None and self._without_gradients is not None and function.graph.name == self._step:
            observation = self._without_gradients
            observation.takes_none_in(function.graph)
        if observation is not None and _RUN_BY_DATASET in function.function_def.attr:
            self._is_in_dataset = True  # tf.data calls it, unseen
        elif observation is not None:
            switch_of(function).kept = observation

    def choose(self, function: Any) -> Ours | None:
        if self._last is not None:  # a step has one function that takes gradients
            return None
        self._last = self._forms_of(function)
        if self._last is None:
            return None
        _, _, forms = self._last
        recorded, key = self._recorded, id(function)
        if self._settings.each and (key in recorded or len(recorded) < _FUNCTIONS):
            self.is_due = self.is_due or recorded[key] < _STEPS_OF_EACH
            self.is_first = self.is_due and not recorded[key]
            recorded[key] += self.is_due
        return forms.record if self.is_due else forms.run

    def is_own(self, error: BaseException) -> bool:
        return self._last is not None and self._last[2].is_own(error)

    def begins(self, *, is_due: bool, args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}) -> None:
        """Before the next step."""
        self.is_due, self._last, self.ago, self.is_first = is_due, None, 1, False
        self.given = args, kwargs
        self.has_recorded = self.is_rented = self.tells = False

    def raised(self, error: BaseException) -> None:
        """It has raised: while it ran, if it was traced to its end."""
        is_end_of_data = isinstance(error, tf.errors.OutOfRangeError)
        if self._last is not None and isinstance(error, tf.errors.OpError) and not is_end_of_data:
            self._on_trace(self._last[2].measurements.trace, error)

    def measured(self) -> Measured | None:
        """After it: what was recorded of it; `None` if it was not recorded."""
        self.given = (), {}  # the program may need the memory
        if self._last is None:
            self._is_unseen = self._is_unseen or self.is_due
            if self._is_in_dataset:
                self.not_recorded = _IN_DATASET
            return None
        function, observation, forms = self._last
        self.has_recorded, self.is_rented = self.is_due, forms.is_rented and not self.is_due
        measured = forms.measurements.take() if self.is_due else None
        if forms.guard is not None and forms.guard.fault is not None and not self._has_caught:
            self._has_caught = True
            warn(_UNGUARDED.format(fault=f"{type(forms.guard.fault).__name__}: {forms.guard.fault}"))
        caught = None if self._has_caught or forms.guard is None else forms.guard.caught
        if caught is not None and forms.guard is not None:
            self._has_caught, forms.guard.spike = True, None
            measured_again = self._replayed(caught, observation)
            if measured_again is not None:
                self.ago, self.tells = caught.ago(self._counter()), True
                return measured_again
            if self._in_vain < _MOST_IN_VAIN and self._was_finite:
                # Its gradients are finite, but their squares are not: what is not finite may come after it.
                self._in_vain += 1
                self._has_caught, forms.guard.caught = False, None
        spike = None if forms.guard is None else forms.guard.spike
        if forms.guard is not None and spike is not None:
            forms.guard.spike = None
            self._spikes += 1
            if self._spikes <= MOST_SPIKES and (measured_again := self._replayed(spike, observation)) is not None:
                self.ago = spike.ago(self._counter())
                return measured_again
        if measured is not None and forms.experiments is not None and (more := forms.experiments.of(measured)):
            measured |= more
            self.is_first = True  # what that costs is no part of a recorded step
        if measured is not None:
            measured["kept_numbers"] = self._numbers[id(function)].news()
        return measured

    def kept(self, name: str = "") -> KeptStep:
        """The last recorded step, to be run again when the program has ended, or the one that is not finite. `name` is
        that of the step's function, if another one calls it.

        Raises:
            NotRepeatable: it cannot be run again.
        """
        if self._raising is not None:
            graphs = [call.flattener.graph for call in self._raising.calls]
            return step_that_raised(graphs, *self.given, [each.variable for each in self._raising.variables])
        if self._last is None:
            raise NotRepeatable("it did not run to its end")
        function, _, forms = self._last
        if not isinstance(forms.measurements, Measurements):
            raise NotRepeatable("it has several replicas, and each of them has its own batch and its own Python code")
        if is_one_of_several():
            raise NotRepeatable("other workers take part in it, and they have ended or go on")
        if forms.guard is None:
            raise NotRepeatable("it is not kept, because its gradients are not checked for NaN (`catch_nonfinite`)")
        return kept_step(forms.guard.units, forms.guard.caught, function._inference_function, name)

    def _replayed(self, caught: Caught, observation: Observation) -> Measured | None:
        """What a step that was caught has computed. Without its forward pass if that cannot be measured."""
        with_values = dataclasses.replace(self._settings, values=True)
        found, fault = self._replayed_once(caught, observation, with_values)
        if fault is not None and not isinstance(fault, NotRepeatable):
            found, fault = self._replayed_once(caught, observation, self._settings)
        if caught.excess is not None:
            if found is None:
                return None
        elif isinstance(fault, NotRepeatable):
            warn(_UNREPEATABLE.format(reason=fault))
        elif fault is not None:
            warn(_NOT_REPEATED.format(fault=f"{type(fault).__name__}: {fault}"))
        self._was_finite = found is not None and not is_broken(*found, skips_scaled=True)
        if found is None or (caught.excess is None and self._was_finite):
            return None
        trace, measured = found
        self._traces += 1
        self._on_trace(trace, None)
        return measured

    def _replayed_once(
        self, caught: Caught, observation: Observation, settings: Settings
    ) -> tuple[tuple[Trace, Measured] | None, Exception | None]:
        try:
            with self._told():
                return self._replays_of(observation).of(caught, settings, self._traces), None
        except faults() as fault:  # the training goes on, and so does its recording
            return None, fault

    def _replays_of(self, observation: Observation) -> Replays:
        if id(observation) not in self._replays:
            self._replays[id(observation)] = Replays(observation, self._inputs)
        return self._replays[id(observation)]

    def _forms_of(self, function: Any) -> tuple[Any, Observation, Forms] | None:
        """The forms of a function, which are made when they are first needed."""
        if id(function) not in self._forms:
            self._forms[id(function)] = None
            observation = observation_in(function)
            if observation is not None and switch_of(function).is_settled:
                warn(_SETTLED.format(ops=", ".join(switch_of(function).draws.unshared)))
            elif observation is not None:
                forms = self._made(function, observation)
                self._traces += 1
                self._on_trace(forms.measurements.trace, None)
                self._numbers[id(function)] = KeptNumbers(
                    forms.measurements.trace, [outside for outside, _ in function.graph.captures]
                )
                self._forms[id(function)] = function, observation, forms
        return self._forms[id(function)]

    @with_stack_space
    def _made(self, function: Any, observation: Observation) -> Forms:
        switch, plain = switch_of(function), function._inference_function
        measurements = measured_in(observation, plain, self._settings, self._inputs, self._traces)
        several = is_one_of_several()
        notes = [_OWN_DRAWS.format(ops=", ".join(switch.draws.unshared))] if switch.draws.unshared else []
        notes += [*([OF_ONE_WORKER] if several else []), *observation.notes]
        measurements.trace = dataclasses.replace(measurements.trace, notes=(*measurements.trace.notes, *notes))
        # A worker alone cannot repeat a step, in which all workers exchange their gradients.
        guarded = self._settings.guarded and not several
        return Forms(function, switch, measurements, self._told, self._questions, guarded=guarded)

    def _seen_again(self, called: Sequence[Any]) -> str:
        """Observes functions that were traced before: see `observed_again`. Returns why none of them can be
        recorded."""
        is_any = False
        for function in called:
            try:
                observation = observed_again(function, self._variables, self._collector)
            except NotRepeatable as error:
                return _COMPILED_BEFORE.format(reason=error)
            except faults() as fault:
                return _COMPILED_BEFORE.format(reason=f"{type(fault).__name__}: {fault}")
            if observation is not None:
                switch_of(function).kept = observation
                is_any = True
        return "" if is_any else without_gradient(called)

    def _instruments(self) -> list[Instrument]:
        return [TermGradients(exact=True)] if self._settings.terms else []

    def _raised(self, error: BaseException, collector: Collector) -> None:
        """The user's step has raised while it was traced: what was observed until then is reported, and nothing
        replaces that error."""
        if collector.calls and collector.fault is None and self._observation is not None:
            with suppressed():
                self._observation.finish()
                trace = trace_of(seen_in(collector), self._traces, keep_source=self._settings.source)
                self._traces += 1
                self._raising = collector
                try:
                    self._on_trace(trace, error)
                finally:
                    self._raising = None


_OWN_DRAWS = (
    "The step draws seeded random numbers with {ops}, whose generator belongs to one compiled function. To draw the "
    "numbers that it draws without the recorder, every step runs in its recorded form, which takes longer. "
    "tf.random.Generator, keras.random with a SeedGenerator and Keras's random layers do not need that."
)

_RUN_BY_DATASET = "_tf_data_function"

_IN_DATASET = (
    "its gradients are taken inside of tf.data, which runs the body of a `for` over a dataset in a compiled function. "
    "Loop over an iterator that is passed as an argument, `step(iter(dataset))`, or around the function."
)

_COMPILED_BEFORE = (
    "its step was compiled before the recorder came, and cannot be read from its graph: {reason}. Record from its "
    "first run on. In a `fit`, the first one after `model.compile(...)` compiles it anew."
)

_SETTLED = (
    "tb_gradflow does not record this step: an earlier recorder has recorded it, and it draws seeded random numbers "
    "with {ops}, whose generator belongs to the function that ran then. Another one would draw them from the beginning."
)

_UNGUARDED = (
    "tb_gradflow no longer looks for the first step that is not finite; the recording goes on. Please report this: "
    "{fault}"
)

_NOT_REPEATED = (
    "tb_gradflow: a gradient of this step is not finite, but the step could not be run again to be recorded; the "
    "recording goes on. Please report this: {fault}"
)

_UNREPEATABLE = (
    "tb_gradflow: a gradient of this step is not finite. The step is not recorded: it cannot be run again without "
    "repeating what it did besides computing: {reason}. With update_freq=1 it is recorded while it runs."
)
