"""Gradients that the user wrote: two witnesses accuse, and what is done on purpose is let be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.evidence.custom_gradients import are_swapped, flaws_of
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import (
    FORMAT,
    GradientCheck,
    GradientSample,
    InputCheck,
    Override,
    Session,
    Source,
    Trace,
)
from tests.analyse.builders import FINE, ZERO, Graph, Row


def sample(returned: float | None, derivative: float, automatic: float | None) -> GradientSample:
    return GradientSample((1,), returned, derivative, automatic)


def compared(*samples: GradientSample, **replaced: Any) -> InputCheck:
    return replace(InputCheck(1, (3,), (3,), 0.5, 0.5, samples), **replaced)


def check(*inputs: InputCheck, **replaced: Any) -> GradientCheck:
    whole = GradientCheck(2, "half", 0, ("Mul",), identity=False, response="linear", inputs=inputs)
    return replace(whole, **replaced)


HALF = compared(sample(1.0, 2.0, 2.0))


def test_a_gradient_that_both_witnesses_deny_is_a_flaw() -> None:
    [flaw] = flaws_of(check(HALF))

    assert flaw.sample == sample(1.0, 2.0, 2.0)
    assert not flaw.is_backwards


@pytest.mark.parametrize(
    "innocent",
    [
        check(),
        check(HALF, identity=True),
        check(HALF, response="other"),
        check(HALF, response="unknown"),
        check(HALF, forward=("Mul", "Round")),
        check(HALF, forward=("StopGradient",)),
        check(compared(sample(1.0, 0.0, 0.0))),
        check(compared(sample(1.0, 2.0, 1.0))),
        check(compared(sample(1.96, 2.0, 2.0))),
        check(compared(sample(1.0, 2.0, 2.0), error_share=0.01)),
        check(compared()),
    ],
    ids=[
        "nothing compared", "changes nothing", "clips", "not finite", "rounds", "stops", "flat", "one witness doubts",
        "nearly right", "one element of many", "no element trusted",
    ],
)  # fmt: skip
def test_what_may_be_meant_is_no_flaw(innocent: GradientCheck) -> None:
    assert list(flaws_of(innocent)) == []


def test_differences_alone_accuse_where_tensorflow_has_no_derivative() -> None:
    [flaw] = flaws_of(check(compared(sample(1.0, 2.0, None), error_share=None, ratio=None)))

    assert flaw.sample is not None


@pytest.mark.parametrize(
    ("wanted", "found", "wrong"),
    [((3,), (), True), ((3,), (4,), True), ((-1, 4), (7, 4), False), ((-1, 4), (7, 5), True), (None, (3,), False)],
)
def test_a_shape_is_wrong_only_where_it_cannot_be_right(wanted: Any, found: Any, wrong: bool) -> None:
    flaws = list(flaws_of(check(compared(shape=wanted, returned_shape=found))))

    assert [flaw.sample for flaw in flaws] == ([None] if wrong else [])


def graph(row: Row) -> Graph:
    """before -> half (a custom gradient) -> loss, and another variable beside it."""
    made = Graph()
    before, beside = made.variable("before"), made.variable("beside")
    result = made.op("Mul", before)
    half = made.op(
        "IdentityN", result, before, passes=("none", "yes"), custom_gradient="CustomGradient-7", line="half(x)"
    )
    made.target(made.op("Sum", made.op("AddV2", half, beside), shape=()))
    made.ask("before", row)
    made.ask("beside", FINE)
    made.gradient(half, FINE)
    made.gradient(before, row)
    return made


def judged(made: Graph, found: GradientCheck) -> Diagnosis:
    [op] = [place for place, each in enumerate(made.ops) if each.type == "IdentityN"]
    line = Source("/home/me/ops.py", 5, "grad", "def grad(upstream):")
    trace = replace(made.trace(), sources=(*made.sources, line))
    trace = replace(trace, gradient_checks=(replace(found, op=op, source=len(made.sources)),))
    session = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
    return diagnose(trace, session, made.numbers(), made.weight_numbers(), tuple(made.losses), 7)


@pytest.mark.parametrize(
    ("shape", "ratio", "told"),
    [
        ((3,), 0.7, "everywhere 0.7 times"),
        ((-1, -1), 0.7, "everywhere 0.7 times"),
        ((), 0.7, ""),
        ((1, 1), 0.7, ""),
        ((), 0.5, "everywhere 0.5 times"),
        ((), 2.0, "everywhere 2 times"),
        ((), -1.0, "everywhere with the wrong sign"),
    ],
)
def test_of_a_single_number_only_a_whole_factor_says_something(shape: tuple[int, ...], ratio: float, told: str) -> None:
    """Any two numbers have a quotient; a batch of unknown size is no single number."""
    flawed = compared(sample(1.0, 2.0, 2.0), shape=shape, returned_shape=shape, ratio=ratio)

    [finding] = judged(graph(FINE), check(flawed)).findings

    assert told in finding.message
    assert bool(told) == ("everywhere" in finding.message)


def test_the_variable_behind_it_is_named_and_the_line_to_mend() -> None:
    [finding] = judged(graph(FINE), check(HALF)).findings

    assert (finding.cause, finding.severity) == ("custom_gradient_wrong", "warning")
    assert finding.variables == ("before",)
    assert finding.source is not None
    assert (finding.source.file, finding.source.line) == ("/home/me/ops.py", 5)
    assert (
        "`half` (ops.py:5) returns 1 where the derivative is 2 (element [1]), everywhere 0.5 times" in finding.message
    )
    assert finding.fix.startswith("Return 2 times as much, or remove `tf.custom_gradient`")


def test_a_wrong_sign_is_an_error() -> None:
    wrong = compared(sample(-2.0, 2.0, 2.0), ratio=-1.0)

    [finding] = judged(graph(FINE), check(wrong)).findings

    assert finding.severity == "error"
    assert "with the wrong sign" in finding.message
    assert finding.fix.startswith("Return its negative")


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        (("Mul",), "Return `upstream` times the derivative, or"),
        (("Softmax",), "Return `y * (upstream - tf.reduce_sum(upstream * y, axis=-1, keepdims=True))`, as every"),
        (("Mul", "Softmax"), "Return the sum of `upstream` times the derivative over all results that"),
    ],
)
def test_where_results_depend_on_several_elements_a_product_is_not_the_remedy(
    forward: tuple[str, ...], says: str
) -> None:
    wrong = compared(sample(1.0, 2.0, 2.0), ratio=None)

    [finding] = judged(graph(FINE), check(wrong, forward=forward)).findings

    assert finding.fix.startswith(says)


def test_an_answer_that_never_changes_is_an_error() -> None:
    [finding] = judged(graph(FINE), check(compared(sample(1.0, 2.0, 2.0), ratio=None), response="constant")).findings

    assert finding.severity == "error"
    assert "does not depend on the upstream gradient" in finding.message
    assert "return upstream * derivative" in finding.fix


def test_zeros_of_its_own_are_told_from_zeros_that_arrive() -> None:
    zeros = check(compared(sample(0.0, 2.0, 2.0), ratio=0.0, error_share=1.0))

    [finding] = judged(graph(ZERO), zeros).findings

    assert (finding.cause, finding.severity) == ("custom_gradient_wrong", "error")
    assert "itself returns zeros, where the derivative is 2" in finding.message


@pytest.mark.parametrize(("arrives", "cause"), [(FINE, "custom_gradient_wrong"), (ZERO, "")])
def test_zeros_of_a_gradient_that_nobody_could_call_are_no_matter_of_the_loop_inside(arrives: Row, cause: str) -> None:
    made = Graph()
    weights = made.variable("field/kernel")
    squashed = made.op("Tanh", made.op("MatMul", made.read("field/kernel"), name="while/MatMul"), name="while/Tanh")
    loop = made.op("While", squashed)
    solved = made.op("IdentityN", loop, weights, passes=("none", "yes"), custom_gradient="CustomGradient-7")
    ahead = made.op("Sub", made.op("Identity", solved))
    made.gradient(ahead, arrives)
    made.target(made.op("Mean", ahead, shape=()))
    made.ask("field/kernel", ZERO)

    findings = judged(made, GradientCheck(0, "", None, response="unknown")).findings

    assert "saturation_sigmoid" not in [finding.cause for finding in findings]
    if cause:
        [finding] = findings
        assert (finding.cause, finding.culprit) == (cause, solved)


def test_a_closed_gate_is_worth_a_look() -> None:
    gate = check(compared(sample(0.0, 2.0, 2.0), ratio=0.0), identity=True)

    [finding] = judged(graph(ZERO), gate).findings

    assert finding.severity == "warning"
    assert "its forward pass changes nothing" in finding.message


def test_what_was_not_compared_is_said() -> None:
    diagnosis = judged(graph(FINE), GradientCheck(0, "half", None, problem="its forward computation runs Python"))

    assert not diagnosis.findings
    assert (
        "The custom gradient of `half` was not compared with the derivative: its forward computation runs Python."
        in diagnosis.unverified
    )


@pytest.mark.parametrize(
    ("second", "swapped"), [(sample(2.0, 5.0, 5.0), True), (sample(2.0, 7.0, 7.0), False)], ids=["swapped", "not"]
)
def test_gradients_in_the_wrong_order_are_no_matter_of_a_factor(second: GradientSample, swapped: bool) -> None:
    first = compared(sample(5.0, 2.0, 2.0), shape=(), returned_shape=(), ratio=2.5)
    found = check(first, compared(second, input=0, shape=(), returned_shape=(), ratio=0.4))

    [finding] = judged(graph(FINE), found).findings

    assert ("vice versa" in finding.message) is swapped
    assert finding.fix.startswith("Return the gradients in the order of the arguments" if swapped else "Return `upst")


@pytest.mark.parametrize(("ratio", "fix"), [(0.5, "Return 2 times as much"), (0.154, "Return `upstream` times the")])
def test_one_number_alone_has_no_factor_but_a_whole_one(ratio: float, fix: str) -> None:
    found = check(compared(sample(2.0 * ratio, 2.0, 2.0), shape=(), returned_shape=(), ratio=ratio))

    [finding] = judged(graph(FINE), found).findings

    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(
    ("first", "second", "swapped"),
    [
        ((40.5, 10.0), (10.1, 40.0), True),
        ((45.0, 10.0), (10.1, 40.0), False),
        ((40.5, 10.0), (12.0, 40.0), False),
        ((0.1, 10.0), (10.0, 0.01), False),
        ((None, 10.0), (10.0, 40.0), False),
        ((10.0, 10.0), (10.0, 10.0), False),
    ],
    ids=["within two digits", "the first is not", "the second is not", "next to nothing", "not known", "equal"],
)
def test_two_inputs_are_swapped_if_each_gets_the_derivative_of_the_other(
    first: tuple[float | None, float], second: tuple[float | None, float], swapped: bool
) -> None:
    one, other = (compared(sample(returned, derivative, derivative)) for returned, derivative in (first, second))

    assert are_swapped(check(one, other)) == swapped
    assert not are_swapped(check(one))


def test_inputs_that_were_compared_at_other_elements_are_not_swapped() -> None:
    one, other = GradientSample((0,), 4.0, 1.0, 1.0), GradientSample((1,), 1.0, 4.0, 4.0)

    assert not are_swapped(check(compared(one), compared(other)))


class Overridden(Graph):
    """A kernel behind `tf.sign`, in a step with blocks of `gradient_override_map`."""

    def __init__(self, *overrides: Override) -> None:
        super().__init__()
        self.overrides = overrides
        sign = self.op("Sign", self.variable("kernel"), api="tf.sign", line="y = tf.sign(x)")
        self.gradient(0, ZERO)
        self.gradient(sign, FINE)
        self.target(self.op("Mean", sign, shape=()))
        self.ask("kernel", ZERO)

    def trace(self) -> Trace:
        return replace(super().trace(), overrides=self.overrides)

    def said(self) -> str:
        return " ".join(each.message for each in self.diagnose().findings if "kernel" in each.variables)


def test_a_block_that_is_meant_for_a_cut_and_does_not_reach_it_is_named() -> None:
    missed = Override("Sign", "Identity", 0, used=False)

    for others in ((), (replace(missed, type="Round"),), (replace(missed, type="Round", used=True),)):
        assert "`gradient_override_map` (model.py:17) does not apply to it" in Overridden(*others, missed).said()


def test_a_block_for_other_ops_is_not() -> None:
    for kind, used in (("Round", False), ("Round", True), ("Sign", True)):
        assert "does not apply" not in Overridden(Override(kind, "Identity", 0, used)).said()
