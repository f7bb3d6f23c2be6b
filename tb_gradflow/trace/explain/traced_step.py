"""A step that TensorFlow traces once, as it does without the recorder, for `tb_gradflow.explain`. In its place runs a
function that is made from that trace: it measures the step, on copies of the variables."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.capture.barriers import StopsAtBarriers
from tb_gradflow.trace.capture.collector import Collector, Scope
from tb_gradflow.trace.capture.instruments import Instrument
from tb_gradflow.trace.capture.nested_gradients import NestedGradients
from tb_gradflow.trace.capture.symbols import SymbolsOfOne
from tb_gradflow.trace.capture.term_gradients import TermGradients
from tb_gradflow.trace.custom_gradient_checks.step_checks import CustomGradients, GradientChecks
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.copies import value_of, variables_given
from tb_gradflow.trace.engine.effects import Effects
from tb_gradflow.trace.engine.switches import switch_of
from tb_gradflow.trace.engine.tracing import onlooking
from tb_gradflow.trace.experiments.answers import answers, in_question
from tb_gradflow.trace.experiments.loss_alone import LastStep, Loss
from tb_gradflow.trace.experiments.training import Training
from tb_gradflow.trace.explain.run_mode import Plan
from tb_gradflow.trace.protection.substitutes import Ours, Run
from tb_gradflow.trace.step.copied_step import CopiedStep
from tb_gradflow.trace.step.forward_values import is_broken
from tb_gradflow.trace.step.measurements import Measured, Measurements
from tb_gradflow.trace.step.mended import mended_step
from tb_gradflow.trace.step.more_rows import MoreRows, trace_with
from tb_gradflow.trace.step.observation import Observation, observed, seen_in
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.tf_internals.function_caches import traces_set_back


class _NothingSeen(Exception):
    """Gradients may be taken inside a function that was traced before."""


class TracedStep:
    """One trace, and its run. Looks on while the step is traced: see `engine.tracing.Onlooker`.

    Args:
        plan: The step.
        checks: Where to keep what is needed to check custom gradients.
        barriers: See `Collector`.

    Attributes:
        trace: The structure of the step; `None` if no gradient was requested before it raised.
        is_complete: Whether it was traced to its end.
        measured: What was measured; empty if it raised.
        training: What can train it; `None` if the plan does not say so, or if it raised.
    """

    def __init__(self, plan: Plan, checks: GradientChecks, barriers: Collection[str] | None) -> None:
        self.trace: Trace | None = None
        self.is_complete = False
        self.measured: Measured = {}
        self.training: Training | None = None
        self._plan = plan
        self._checks = checks
        self._barriers = barriers
        self._observation: Observation | None = None
        self._function: Any = None
        self._is_beside = False
        self._hides: Sequence[Any] = ()

    def run(self) -> None:
        """Traces and measures it. Raises what it raises."""
        try:
            self._run_once(anew=False)
        except _NothingSeen:
            self._run_once(anew=True)

    def _run_once(self, *, anew: bool) -> None:
        with onlooking(self), traces_set_back(anew=anew) as known:
            self._hides = [] if anew else known
            self._plan.compiled(lambda *args: self._step(*args))

    def _step(self, *args: Any) -> Any:
        assert self._observation is not None
        symbols = self._observation.of_replica(0).symbols
        assert isinstance(symbols, SymbolsOfOne)
        symbols.begins()
        return self._plan.traced(*args)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        before = self._observation if self._function is not None else None
        self._observation = observation = Observation(self._collector)
        with observed(observation, self._raised):
            yield
        # TensorFlow makes a function of its own to initialise the variables that a step creates.
        self._is_beside = before is not None and not any(each.calls for each in observation.collectors)
        if self._is_beside:
            self._observation = before

    def _collector(self, replica: int) -> Collector:
        barriers = self._barriers
        instruments: list[Instrument] = [StopsAtBarriers(barriers or ()), CustomGradients(self._checks)]
        if self._plan.terms and barriers is None:
            instruments.append(TermGradients(exact=False))
        instruments.append(NestedGradients())
        return Collector(self._plan.variables(), SymbolsOfOne(), Scope("all", False, barriers), instruments)

    def traced(self, function: Any) -> None:
        if not self._is_beside and not getattr(function.graph.outer_graph, "building_function", False):
            self._function = function
            switch_of(function)

    def choose(self, function: Any) -> Ours | None:
        return self._run if function is self._function else None

    def is_own(self, error: BaseException) -> bool:
        """Nothing else runs in place of a function that has failed."""
        return False

    def failed(self, fault: Exception) -> None:
        raise fault

    def _raised(self, error: BaseException, collector: Collector) -> None:
        """The user's step has raised while it was traced: nothing replaces that error."""
        if collector.calls and collector.fault is None and self._observation is not None:
            with contextlib.suppress(Exception):
                self._observation.finish()
                self.trace = trace_with(MoreRows(), seen_in(collector), collector.applied, 0).trace

    def _run(self, run: Run, args: Sequence[Any]) -> None:
        run.of(self._results, args)

    def _results(self, args: Sequence[Any]) -> Any:
        """Those of the step with these arguments, which include what it captures."""
        assert self._observation is not None
        if self._hides and not any(each.calls for each in self._observation.collectors):
            raise _NothingSeen
        function = self._function._inference_function
        values = {number: value_of(args[number], dtype) for number, dtype in variables_given(function).items()}
        effects = Effects(function)
        first = self._form(values=bool(effects.unknown))
        self.trace, self.is_complete = first.trace, True
        results, self.measured = first.ran(args, values, before=[effects.keeping(())], keeps_values=True)
        kept = effects.taken()
        if self._plan.trains and isinstance(first.measurements, Measurements):
            self.training = self._training(first.measurements, args, effects, kept)
        if not effects.unknown and is_broken(first.trace, self.measured, skips_scaled=False):
            # Without its forward pass, if that cannot be measured.
            with contextlib.suppress(Exception):
                again = self._form(values=True)
                given = effects.given(kept, all_run=True)
                _, measured = again.ran(args, values, after=[given])
                if is_broken(again.trace, measured, skips_scaled=False):
                    last = LastStep(function, args, values, effects, given)
                    self.trace, self.measured = again.trace, measured
                    self.measured |= mended_step(again.measurements, measured, lambda: last)
                    return results
        if isinstance(first.measurements, Measurements):
            pairs = in_question(first.trace, self.measured["gradients"])
            losses = self._losses(first.measurements)
            last = LastStep(function, args, values, effects, effects.given(kept, all_run=True), first.after)
            was = first.measurements.by_target(self.measured)
            known = first.measurements
            self.measured |= answers(
                pairs,
                losses,
                known.variables,
                lambda: last,
                was,
                known.numbered,
                self.measured,
                calls=known.calls,
                searches=bool(first.trace.optimizers),
                grades=True,
            )
        return results

    def _losses(self, measurements: Measurements) -> dict[int, Loss]:
        return measurements.losses_in([place.graph for place in places(self._function._inference_function)])

    def _training(self, seen: Measurements, args: Sequence[Any], effects: Effects, kept: Mapping[Any, Any]) -> Training:
        numbers = {id(each): number for number, each in enumerate(args)}
        listed = self._plan.descended
        descended = None if listed is None else [numbers.get(id(each.handle)) for each in listed]
        known = (seen.trace, seen.variables, seen.calls, self._losses(seen))
        return Training(self._function, args, effects, kept, *known, descended)

    def _form(self, *, values: bool) -> CopiedStep:
        """A form of the step; with `values`, it measures the forward pass too."""
        assert self._observation is not None
        function = self._function._inference_function
        # TensorFlow optimises it, which takes longer than running it, only where XLA compiles something: it may refuse.
        optimized = self._barriers is None and any(place.in_xla for place in places(function))
        settings, index = Settings(values=values), int(self.trace is not None)
        return CopiedStep(function, self._observation, settings, self._plan.inputs, index, optimized=optimized)
