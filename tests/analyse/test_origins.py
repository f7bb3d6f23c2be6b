"""What broke first where the loss is not finite, and weights and batches that were so before any op."""

from __future__ import annotations

import pytest

from tb_gradflow.record.schema import Input
from tests.analyse.builders import FINE, INF, NAN, ZERO, Graph, Row, sized, statuses


def squared(*, exponent: float, loss: float) -> tuple[Graph, int, int]:
    """A quotient, then a power that the loss is the mean of; the gradient is NaN from the power on."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    quotient = graph.op("RealDiv", product)
    power = graph.op("Pow", quotient, constants={1: exponent})
    for op in (product, quotient):
        graph.gradient(op, NAN)
    graph.gradient(power, FINE)
    graph.target(graph.op("Mean", power), loss=loss)
    graph.ask("kernel", NAN)
    return graph, quotient, power


def test_a_square_is_finite_wherever_its_argument_is() -> None:
    graph, quotient, _ = squared(exponent=2.0, loss=float("nan"))

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("zero_over_zero", quotient)


def test_a_root_written_as_a_power_is_not() -> None:
    graph, _, power = squared(exponent=0.5, loss=0.3)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("pow_fraction_at_zero", power)


def test_a_quotient_of_exponentials_overflows_and_is_not_zero_over_zero() -> None:
    """`e / (e + 1)` with a large exponent is inf / inf."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    exponential = graph.op("Exp", product, api="tf.exp", line="e = tf.exp(x @ w)")
    above = graph.op("AddV2", exponential, constants={1: 1.0})
    quotient = graph.op("RealDiv", exponential, above)
    for op in (product, exponential, above):
        graph.gradient(op, NAN)
    graph.gradient(quotient, FINE)
    graph.target(graph.op("Mean", quotient), loss=float("nan"))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("exp_overflow", exponential)
    assert "`tf.nn.sigmoid(x @ w)`" in finding.fix


def test_a_term_that_is_finite_beside_one_that_is_not_is_no_birthplace() -> None:
    graph = Graph()
    shared = graph.op("Sigmoid", graph.variable("kernel"))
    fine, broken = graph.op("Mul", shared), graph.op("Sqrt", shared)
    root = graph.op("Identity", broken)
    graph.gradient(shared, NAN)
    graph.gradient(fine, FINE)
    graph.gradient(broken, FINE)
    graph.gradient(root, FINE)
    graph.target(graph.op("AddV2", fine, root))
    graph.ask("kernel", NAN)

    causes = {finding.cause for finding in graph.diagnose().findings}

    assert causes == {"sqrt_at_zero"}


@pytest.mark.parametrize(("row", "cause"), [(NAN, "log_zero"), (INF, "log_zero")])
def test_a_loss_that_no_gradient_shows_is_told(row: Row, cause: str) -> None:
    """The logarithm of a negative number is NaN, and its derivative is a number."""
    graph = Graph()
    logarithm = graph.op("Log", graph.variable("kernel"))
    graph.gradient(logarithm, FINE)
    graph.target(graph.op("Mean", logarithm), loss=float("nan") if row is NAN else float("inf"))
    graph.ask("kernel", FINE)

    diagnosis = graph.diagnose()

    assert statuses(diagnosis) == {"kernel": "connected"}
    [finding] = diagnosis.findings
    assert (finding.cause, finding.culprit, finding.severity) == (cause, logarithm, "error")
    assert "no gradient shows it" in finding.message


def test_a_loss_whose_value_was_not_taken_is_not_called_nan() -> None:
    graph = Graph()
    graph.target(graph.op("Mean", graph.variable("kernel")), loss=float("nan"), measured=False)
    graph.ask("kernel", FINE)

    assert graph.diagnose().findings == ()


class TestWeightsAndBatch:
    def broken(self) -> Graph:
        graph = Graph()
        logarithm = graph.op("Log", graph.op("MatMul", graph.variable("kernel")))
        graph.gradient(1, INF)
        graph.gradient(logarithm, FINE)
        graph.target(graph.op("Mean", logarithm), loss=float("nan"))
        graph.ask("kernel", NAN)
        return graph

    def test_weights_that_were_nan_before_are_to_blame_and_no_op_is(self) -> None:
        graph = self.broken()
        graph.nonfinite[0] = (2.0, 3.0)

        finding = graph.only_finding()

        assert (finding.cause, finding.op) == ("nonfinite_weights", None)
        assert "`kernel` (2 of 3 values)" in finding.message

    def test_weights_that_became_nan_by_a_nan_gradient_are_not_the_cause(self) -> None:
        graph = self.broken()
        graph.nonfinite[0] = (0.0, 3.0)

        assert graph.only_finding().cause == "log_zero"

    @pytest.mark.parametrize(("size", "squares"), [(1e20, True), (1e3, False)])
    def test_weights_that_the_optimizer_broke_are_told_with_what_it_could_not_square(
        self, size: float, squares: bool
    ) -> None:
        graph = Graph()
        graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("kernel"))))
        graph.ask("kernel", sized(size))
        graph.nonfinite[0] = (0.0, 3.0)

        [finding] = [each for each in graph.diagnose().findings if each.cause == "nonfinite_update"]

        assert ("squares" in finding.message) == squares
        assert ("clipvalue=1.0" in finding.fix) == squares

    def test_weights_that_break_beside_a_broken_gradient_are_no_fault_of_the_optimizers(self) -> None:
        """Clipping by the norm of all gradients hands NaN on to those that are finite."""
        graph = self.broken()
        shift = graph.op("AddV2", graph.variable("bias"), graph.targets[0].op)
        graph.target(shift)
        graph.ask("bias", FINE)
        graph.nonfinite[graph.place("bias")] = (0.0, 3.0)

        findings = {finding.cause: finding for finding in graph.diagnose().findings}

        assert findings["log_zero"].severity == "error"
        assert (findings["nonfinite_update"].severity, findings["nonfinite_update"].variables) == ("info", ("bias",))
        assert "global_clipnorm" in findings["nonfinite_update"].message

    def test_nan_in_the_batch_is_to_blame(self) -> None:
        graph = self.broken()
        graph.inputs.append(Input("features", graph.row((1.0, 1.0, 0.5, 0.0, 4.0, 0.0))))

        finding = graph.only_finding()

        assert (finding.cause, finding.op) == ("nonfinite_input", None)
        assert "`features` contains 4 NaN" in finding.message

    def test_infinities_in_front_of_anything_but_a_softmax_are_no_mask(self) -> None:
        graph = self.broken()
        graph.inputs.append(Input("features", graph.row((0.0, 0.0, 0.0, 0.5, 0.0, 4.0))))

        assert graph.only_finding().cause == "nonfinite_input"

    def test_a_batch_that_is_not_finite_is_not_to_blame_for_a_loss_that_is(self) -> None:
        """A choice may leave these rows out of the loss."""
        graph = self.broken()
        graph.losses[0] = 0.5
        graph.inputs.append(Input("features", graph.row((1.0, 1.0, 0.5, 0.0, 4.0, 0.0))))

        assert graph.only_finding().cause != "nonfinite_input"

    def test_infinities_alone_may_be_a_mask_for_a_softmax(self) -> None:
        graph = Graph()
        scores = graph.op("MatMul", graph.variable("kernel"))
        softmax = graph.op("Softmax", scores)
        graph.gradient(scores, NAN)
        graph.gradient(softmax, FINE)
        graph.target(graph.op("Mean", softmax), loss=float("nan"))
        graph.ask("kernel", NAN)
        graph.inputs.append(Input("mask", graph.row((0.0, 0.0, 0.0, 0.5, 0.0, 4.0))))

        assert graph.only_finding().cause == "softmax_all_masked"


def test_half_precision_in_front_of_the_birthplace_is_blamed() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"), dtype="float16")
    wide = graph.op("Cast", product)
    square = graph.op("Square", wide)
    for op in (product, wide):
        graph.gradient(op, INF)
    graph.gradient(square, FINE)
    graph.target(graph.op("Mean", square), loss=float("inf"))
    graph.ask("kernel", INF)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("fp16_overflow", product)


def test_what_half_precision_cannot_hold_is_flushed_at_the_cast() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"), dtype="float16")
    wide = graph.op("Cast", product)
    graph.gradient(product, ZERO)
    graph.gradient(wide, sized(1e-9))
    graph.target(graph.op("Mean", wide))
    graph.ask("kernel", ZERO)

    assert graph.only_finding().cause == "fp16_underflow"
