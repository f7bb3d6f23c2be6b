"""Variables that get a gradient, and that the update of the same step does not move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.over_time.run_context import ALONE, RunContext
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import FORMAT, Deferred, Movement, Optimizer, Session, Trace
from tests.analyse.builders import FINE, NAN, ZERO, Graph, Row, sized

SGD = Optimizer("SGD", False, False, "", False, 1, False)


@dataclass(frozen=True)
class Weight:
    """A variable of three elements, and its update: by default, no element moves."""

    gradient: Row = FINE
    zeros: int = 0
    moved: int = 0
    unmoved: int = 3
    rounded: int = 0
    rate: float = 0.1
    constraint: str = ""
    decay: float = 0.0
    dtype: str = "float32"
    norms: tuple[float, float] = (1.0, 0.0)
    target: int = 0


class Update(Graph):
    """A step that applies gradients, all with one optimizer. Each variable is a factor of the loss."""

    def __init__(
        self,
        *weights: Weight,
        optimizer: Optimizer = SGD,
        loss: float = 0.5,
        deferred: Deferred | None = None,
        context: RunContext = ALONE,
    ) -> None:
        super().__init__()
        self.optimizer, self.movements, self.context = optimizer, list[Movement](), context
        self.deferred = (deferred,) if deferred is not None else ()
        targets = sorted({weight.target for weight in weights})
        for at, weight in enumerate(weights):
            self.variable(f"w{at}", dtype=weight.dtype)
        for target in targets:
            read = [at for at, weight in enumerate(weights) if weight.target == target]
            self.target(self.op("Mean", self.op("Exp", *read), shape=()), loss=loss)
        for at, weight in enumerate(weights):
            self.ask(f"w{at}", weight.gradient, target=weight.target)
            row = self.row((weight.zeros, weight.moved, 0, weight.unmoved, weight.rounded, weight.rate))
            self.movements.append(Movement(at, 0, row, weight.decay, weight.constraint))
            self.weights[at] = weight.norms

    def trace(self) -> Trace:
        movements = tuple(self.movements)
        return replace(super().trace(), movements=movements, optimizers=(self.optimizer,), deferred=self.deferred)

    def findings(self) -> list[Finding]:
        session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
        numbers, losses = (self.numbers(), self.weight_numbers()), tuple(self.losses)
        diagnosis = diagnose(self.trace(), session, *numbers, losses, 7, context=self.context)
        found = [finding for finding in diagnosis.findings if finding.cause != "zero_gradient"]
        assert {finding.cause for finding in found} <= {"gradient_not_applied"}
        return found

    def severities(self) -> list[str]:
        return [finding.severity for finding in self.findings()]


MOVING = Weight(moved=0, unmoved=0, norms=(1.0, 0.1))
NOTHING = Weight(gradient=ZERO, zeros=3, unmoved=0)
AT_ZERO = Weight(constraint="NonNeg", norms=(0.0, 0.0))


def test_a_variable_that_moves_is_fine() -> None:
    assert Update(MOVING).severities() == []
    assert Update(replace(MOVING, unmoved=1)).severities() == []


def test_a_learning_rate_of_zero_is_a_warning_unless_it_is_that_of_a_schedule() -> None:
    [finding] = Update(Weight(rate=0.0)).findings()

    assert finding.severity == "warning"
    assert "its learning rate is 0 in this step" in finding.message
    assert "optimizer.learning_rate.assign(1e-3)" in finding.fix
    [scheduled] = Update(Weight(rate=0.0), optimizer=replace(SGD, scheduled=True)).findings()
    assert scheduled.severity == "info"
    assert scheduled.fix == "Nothing to fix if the schedule starts or ends at 0."
    assert Update(replace(MOVING, rate=0.0)).severities() == []


def test_a_learning_rate_that_is_not_known_is_not_zero() -> None:
    assert Update(Weight(rate=float("nan"))).severities() == []


@pytest.mark.parametrize(("dtype", "severity"), [("float16", "warning"), ("bfloat16", "warning"), ("float32", "info")])
def test_updates_below_the_spacing_of_numbers_matter_in_half_precision(dtype: str, severity: str) -> None:
    [finding] = Update(Weight(rounded=2, unmoved=2, dtype=dtype)).findings()

    assert finding.severity == severity
    assert "2 of 3 elements do not move" in finding.message
    assert ("mixed_precision" in finding.fix) == (severity == "warning")


def test_if_most_elements_move_the_others_do_not_matter() -> None:
    assert Update(Weight(rounded=1, unmoved=1, dtype="float16")).severities() == []
    # One of the two with a gradient.
    assert Update(Weight(rounded=1, unmoved=1, zeros=1, dtype="float16")).severities() == ["warning"]
    assert Update(Weight(rounded=2, unmoved=2, dtype="float16"), loss=0.0).severities() == []


@pytest.mark.parametrize("clips", ["clipnorm=1e-07", "clipvalue=1.0, clipnorm=1e-07", "global_clipnorm=1e-07"])
def test_a_limit_for_gradients_that_leaves_nothing_of_them_is_a_warning(clips: str) -> None:
    [finding] = Update(Weight(), optimizer=replace(SGD, clips=clips)).findings()

    assert finding.severity == "warning"
    assert "what remains of them is rounded away" in finding.message


@pytest.mark.parametrize("clips", ["clipnorm=1.0", "something else", ""])
def test_other_limits_are_not_the_reason(clips: str) -> None:
    [finding] = Update(Weight(), optimizer=replace(SGD, clips=clips)).findings()

    assert finding.severity == "info"
    assert "something restores the values after the update" in finding.message


def test_a_limit_counts_by_what_it_leaves_of_a_large_weight() -> None:
    """1e-5 of a gradient, times 0.1, is rounded away next to a hundred, but not next to one."""
    optimizer = replace(SGD, clips="clipnorm=1e-05")

    assert Update(Weight(norms=(100.0, 0.0)), optimizer=optimizer).severities() == ["warning"]
    assert Update(Weight(), optimizer=optimizer).severities() == ["info"]


def test_gradients_that_are_added_up_wait_for_the_last_of_them() -> None:
    for rate in (0.1, 0.0):
        [finding] = Update(Weight(rate=rate), optimizer=replace(SGD, accumulates=4, clips="clipnorm=1e-07")).findings()

        assert (finding.severity, finding.fix) == ("info", "Nothing to fix.")
        assert "adds up the gradients of 4 steps" in finding.message


def test_what_a_constraint_holds_is_a_warning_if_nothing_else_moves_either() -> None:
    assert Update(AT_ZERO, AT_ZERO).severities() == ["warning"]
    assert Update(AT_ZERO, MOVING).severities() == ["info"]
    [finding] = Update(AT_ZERO, NOTHING).findings()
    assert finding.severity == "warning"
    assert "`NonNeg`, undoes the update of SGD: no element has changed in this step." in finding.message


def test_a_constraint_is_not_the_reason_above_its_bound() -> None:
    [finding] = Update(replace(AT_ZERO, norms=(1.0, 0.0))).findings()

    assert "NonNeg" not in finding.message


def test_a_constraint_is_not_the_reason_while_gradients_are_added_up() -> None:
    [finding] = Update(Weight(constraint="NonNeg"), optimizer=replace(SGD, accumulates=4)).findings()

    assert "adds up the gradients of 4 steps" in finding.message


SUM = Deferred(0, True, None, False, None)


def test_a_step_that_adds_up_gradients_by_hand_waits() -> None:
    for deferred, told in (
        (SUM, "The step adds its gradient to that of other steps"),
        (Deferred(0, False, None, True, None), "The update runs only under a condition"),
    ):
        [finding] = Update(Weight(), deferred=deferred).findings()

        assert finding.severity == "info"
        assert "it waits for its turn" in finding.message
        assert told in finding.message
        assert finding.fix.startswith("Nothing to fix.")


def test_a_step_in_which_something_moves_does_not_wait() -> None:
    assert Update(MOVING, deferred=SUM).severities() == []
    assert Update(NOTHING, deferred=SUM).severities() == []
    assert Update(replace(MOVING, norms=(1.0, 0.0)), deferred=SUM, loss=0.0).severities() == []


def test_waiting_ends_with_the_better_part_of_a_run() -> None:
    for steps, waits in ((63, True), (64, False)):
        [finding] = Update(Weight(), deferred=SUM, context=RunContext(standstill={0: steps})).findings()

        assert ("waits for its turn" in finding.message) == waits


def test_a_sum_of_the_optimizer_ends_with_its_number_of_steps() -> None:
    summed = replace(SGD, accumulates=4)
    for steps, waits in ((4, True), (5, False)):
        [finding] = Update(Weight(), optimizer=summed, context=RunContext(standstill={0: steps})).findings()

        assert ("adds up the gradients" in finding.message) == waits


def test_what_another_loss_trains_does_not_excuse_a_constraint() -> None:
    assert Update(AT_ZERO, replace(MOVING, target=1)).severities() == ["warning"]


def test_a_constraint_that_leaves_rounding_holds_too() -> None:
    """A norm of one, computed again: the weight moves by less than its precision."""
    rounding = Weight(constraint="UnitNorm", unmoved=1, norms=(1.0, 1e-7))

    [finding] = Update(rounding, MOVING).findings()

    assert finding.severity == "info"
    assert "no element has changed in this step by more than rounding" in finding.message
    for other in (
        replace(rounding, norms=(1.0, 1e-4)),
        replace(rounding, rate=1e-6),
        replace(rounding, decay=0.01),
        replace(rounding, constraint=""),
    ):
        assert Update(other, MOVING).severities() == []


def test_a_small_gradient_may_leave_an_adaptive_optimizer_where_it_is() -> None:
    assert Update(Weight(gradient=sized(0.02))).severities() == ["info"]
    assert Update(Weight(gradient=sized(0.002))).severities() == []


def test_ftrl_keeps_weights_at_zero() -> None:
    ftrl = replace(SGD, type="Ftrl")

    [finding] = Update(Weight(norms=(0.0, 0.0)), optimizer=ftrl).findings()

    assert finding.severity == "info"
    assert "Ftrl keeps it at exactly zero" in finding.message
    assert Update(Weight(), optimizer=ftrl).severities() == []


@pytest.mark.parametrize("kind", ["Adadelta", "AdadeltaOptimizer"])
def test_adadelta_hardly_moves_weights_with_a_small_learning_rate(kind: str) -> None:
    adadelta, slow = replace(SGD, type=kind), replace(MOVING, rate=0.001, norms=(1.0, 1e-5))

    [finding] = Update(slow, optimizer=adadelta).findings()

    assert finding.severity == "info"
    assert "by only 1e-05 of its norm in this step" in finding.message
    for other in (replace(slow, rate=1.0), replace(slow, norms=(1.0, 1e-3)), replace(slow, decay=0.01)):
        assert Update(other, optimizer=adadelta).severities() == []
    assert Update(slow).severities() == []
    assert Update(slow, optimizer=adadelta, loss=0.0).severities() == []


def test_a_step_that_loss_scaling_skips_shows_nothing_about_its_updates() -> None:
    broken = Weight(gradient=NAN)
    causes = {
        scaled: {
            each.cause for each in Update(Weight(), broken, optimizer=replace(SGD, scaled=scaled)).diagnose().findings
        }
        for scaled in (False, True)
    }

    assert "gradient_not_applied" in causes[False]
    assert "gradient_not_applied" not in causes[True]
