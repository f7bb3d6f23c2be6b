"""NaN and infinity: born where the incoming gradient is finite and the outgoing one is not."""

from __future__ import annotations

import math

import pytest

from tests.analyse.builders import FINE, INF, NAN, Graph, Row, sized


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("Sqrt", "sqrt_at_zero"),
        ("Rsqrt", "sqrt_at_zero"),
        ("RealDiv", "zero_over_zero"),
        ("Log", "log_zero"),
        ("Exp", "exp_overflow"),
        ("Pow", "pow_fraction_at_zero"),
        ("Acos", "acos_at_one"),
        ("Softmax", "softmax_all_masked"),
        ("MatMul", "not_finite"),
    ],
)
def test_the_birthplace_is_named_with_its_cause(kind: str, cause: str) -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(product, INF)
    risky = graph.op(kind, product)
    graph.gradient(risky, FINE)
    graph.target(graph.op("Mean", risky))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.culprit) == (cause, "error", risky)


def test_where_the_loss_is_nan_the_forward_pass_broke_first() -> None:
    """A 0/0 shows itself in the backward pass only where its value is used: at the square behind it."""
    graph = Graph()
    share = graph.op("RealDiv", graph.op("Relu", graph.variable("kernel")))
    product = graph.op("MatMul", share, graph.variable("head"))
    square = graph.op("Square", product)
    for op in (share, product):
        graph.gradient(op, NAN)
    graph.gradient(square, FINE)
    graph.target(graph.op("Mean", square), loss=float("nan"))
    graph.ask("kernel", NAN)
    graph.ask("head", NAN)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("zero_over_zero", share)
    assert finding.variables == ("kernel", "head")


LINE = "y = tf.where(x > 0., tf.math.log(x), 0.)"


def hidden_by_where(*, zeros: float, loss: float = 0.5) -> Graph:
    graph = Graph()
    log = graph.op("Log", graph.op("Mul", graph.variable("alpha")), line=LINE, api="tf.math.log")
    graph.gradient(1, NAN)
    graph.gradient(log, sized(0.1, zeros=zeros))
    chosen = graph.op("SelectV2", log, first=1, line=LINE, api="tf.where")
    graph.gradient(chosen, FINE)
    graph.target(graph.op("Mean", chosen), loss=loss)
    graph.ask("alpha", NAN)
    return graph


def test_where_hides_the_value_and_not_the_gradient() -> None:
    finding = hidden_by_where(zeros=0.4).only_finding()

    assert finding.cause == "where_inactive_branch"
    assert finding.op is not None
    assert finding.op.type == "Log"
    assert "tf.where(ok, x, 1.0)" in finding.fix


def test_a_where_that_hides_no_element_is_not_to_blame() -> None:
    assert hidden_by_where(zeros=0.0).only_finding().cause == "log_zero"


def test_a_where_that_lets_the_nan_through_is_not_to_blame() -> None:
    assert hidden_by_where(zeros=0.4, loss=float("nan")).only_finding().cause == "log_zero"


def test_above_the_largest_half_there_is_infinity() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"), dtype="float16")
    graph.gradient(product, INF)
    scaled = graph.op("Mul", product, dtype="float16")
    graph.gradient(scaled, FINE)
    graph.target(graph.op("Mean", scaled))
    graph.ask("kernel", INF)

    assert graph.only_finding().cause == "fp16_overflow"


def test_the_logarithm_of_a_relu_breaks_in_any_precision() -> None:
    graph = Graph()
    kept = graph.op("Relu", graph.op("Cast", graph.variable("kernel"), dtype="float16"), dtype="float16")
    log = graph.op("Log", kept, dtype="float16")
    shifted = graph.op("AddV2", log, graph.op("Cast", graph.variable("bias"), dtype="float16"), dtype="float16")
    squared = graph.op("Square", graph.op("Cast", shifted))
    for op in (kept, log, shifted):
        graph.gradient(op, NAN)
    graph.gradient(squared, FINE)
    graph.target(graph.op("Mean", squared), loss=float("inf"))
    graph.ask("kernel", NAN)
    graph.ask("bias", NAN)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("log_zero", log)


@pytest.mark.parametrize(("kernel_moved", "severity"), [(0.0, "info"), (0.1, "error")])
def test_a_step_that_loss_scaling_leaves_out_is_information(kernel_moved: float, severity: str) -> None:
    """The last layer is in single precision, and moving averages move in such a step too."""
    graph = Graph()
    normal = graph.op("Rsqrt", graph.op("Cast", graph.variable("kernel"), dtype="float32"))
    graph.gradient(normal, NAN)
    halved = graph.op("Cast", normal, dtype="float16")
    graph.gradient(halved, INF)
    back = graph.op("Cast", halved)
    graph.gradient(back, FINE)
    graph.target(graph.op("Mean", back), scaled=True)
    graph.variable("moving_mean", trainable=False)
    graph.ask("kernel", NAN)
    graph.weights = {0: (1.0, kernel_moved), 1: (1.0, 0.5)}

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.culprit) == ("fp16_overflow", severity, back)
    assert ("skipped the step" in finding.message) == (severity == "info")


def test_of_a_loss_the_prediction_is_to_be_checked_not_the_labels() -> None:
    graph = Graph()
    logits = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(logits, INF)
    api = "keras.losses.sparse_categorical_crossentropy"
    entropy = graph.op(
        "SparseSoftmaxCrossEntropyWithLogits", logits, api=api, line=f"loss = {api}(labels, model(images))"
    )
    graph.gradient(entropy, FINE)
    graph.target(graph.op("Mean", entropy))
    graph.ask("kernel", NAN)

    assert "check_numerics(model(images), " in graph.only_finding().fix


@pytest.mark.parametrize("bounded", ["of a square", "of the loss", "of anything"])
def test_an_exponential_that_cannot_overflow_is_not_blamed(bounded: str) -> None:
    """NaN came in: what broke lies in front of it."""
    graph = Graph()
    share = graph.op("RealDiv", graph.variable("kernel"))
    graph.gradient(share, NAN)
    given = graph.op("Neg", graph.op("Square", share)) if bounded == "of a square" else graph.op("Relu", share)
    graph.gradient(given, NAN)
    name = "loss/logistic_loss/Exp" if bounded == "of the loss" else "Exp"
    exponential = graph.op("Exp", given, name=name)
    graph.gradient(exponential, sized(0.1, zeros=0.4))
    graph.target(graph.op("Mean", exponential), loss=float("nan"))
    graph.ask("kernel", NAN)

    found = graph.only_finding()

    assert (found.cause, found.culprit) == (
        ("exp_overflow", exponential) if bounded == "of anything" else ("zero_over_zero", share)
    )


def test_a_norm_of_calls_with_arguments_is_written_out_whole() -> None:
    graph = Graph()
    difference = graph.op("Sub", graph.variable("kernel"))
    graph.gradient(difference, NAN)
    root = graph.op(
        "Sqrt", difference, api="tf.norm", line="d = tf.norm(encode(a, training=True) - encode(b, 1), axis=1)"
    )
    graph.gradient(root, FINE)
    graph.target(graph.op("Mean", root))
    graph.ask("kernel", NAN)

    inside = "tf.reduce_sum(tf.square(encode(a, training=True) - encode(b, 1)), axis=1)"
    assert f"`tf.sqrt({inside} + 1e-12)`" in graph.only_finding().fix


def behind_an_unmeasured_body(*, loss: float) -> Graph:
    """The gradients inside a function are not recorded: the birthplace is known to lie between its two ends."""
    graph = Graph()
    weights = graph.op("Softmax", graph.variable("logits"))
    graph.gradient(graph.variable("scale"), FINE)
    points = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(points, NAN)
    distance = graph.op("Pow", points, constants={1: 0.5}, name="body/Pow")
    soft = graph.op("Log", graph.op("Exp", distance, name="body/Exp"), name="body/Log")
    end = graph.op("Mul", soft, weights)
    graph.gradient(end, FINE)
    graph.gradient(0, FINE)
    graph.target(graph.op("Mean", end), loss=loss)
    graph.ask("kernel", NAN)
    graph.ask("logits", FINE)
    return graph


def test_with_a_finite_loss_a_function_in_front_broke_in_its_derivative_alone() -> None:
    """The softmax hands back what is finite, and an exponential that were too large would show in the loss."""
    finding = behind_an_unmeasured_body(loss=0.5).only_finding()

    assert finding.op is not None
    assert (finding.cause, finding.op.type) == ("pow_fraction_at_zero", "Pow")


def test_with_a_loss_that_is_not_finite_the_nearest_function_in_front_is_named() -> None:
    finding = behind_an_unmeasured_body(loss=float("nan")).diagnose().findings[0]

    assert finding.op is not None
    assert finding.op.type in ("Softmax", "Exp", "Log")


def test_the_mean_of_a_tensor_without_elements_is_named_and_what_left_none() -> None:
    """No gradient shows it: that of the empty term has no elements, and the other term's is finite."""
    graph = Graph()
    fitted = graph.op("MatMul", graph.variable("kernel"))
    slope = graph.op("MatMul", fitted, shape=(32, 1))
    nothing = graph.op("StridedSlice", slope, shape=(32, 0), api="[]", line="du_dy = du_dx[:, 2:]")
    term = graph.op("Mean", graph.op("Square", nothing, shape=(32, 0)), shape=(), api="tf.reduce_mean")
    error = graph.op("Mean", fitted, shape=())
    graph.gradient(fitted, FINE)
    graph.target(graph.op("AddV2", error, term, shape=()), loss=float("nan"))
    graph.ask("kernel", FINE)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("zero_over_zero", term)
    assert "has shape (32, 0)" in finding.message
    assert "du_dy = du_dx[:, 2:]" in finding.fix


@pytest.mark.parametrize(("masked", "cause"), [(False, "log_zero"), (True, "softmax_all_masked")])
def test_a_softmax_that_nothing_masks_is_not_what_broke_the_forward_pass(masked: bool, cause: str) -> None:
    """A mixture's weights lie as near to the loss as its densities do, whose logarithm is of a label of zero."""
    graph = Graph()
    scores = graph.op("AddV2", graph.op("MatMul", graph.variable("kernel")), graph.variable("bias"))
    log = graph.op("Log", graph.op("Mul", scores))
    weights = graph.op("Softmax", graph.op("SelectV2", scores, first=1) if masked else scores)
    mixed = graph.op("Mul", weights, graph.op("Exp", graph.op("Neg", graph.op("Square", log))))
    graph.gradient(weights, NAN)
    graph.gradient(mixed, NAN)
    outer = graph.op("Square", mixed)
    graph.gradient(outer, FINE)
    graph.target(graph.op("Mean", outer), loss=float("nan"))
    graph.ask("kernel", NAN)
    graph.ask("bias", NAN)

    assert graph.only_finding().cause == cause


@pytest.mark.parametrize(
    ("inner", "row", "cause"),
    [("Log", NAN, "log_zero"), ("Log", INF, "exp_overflow"), ("MatMul", NAN, "exp_overflow")],
)
def test_a_power_by_hand_passes_on_the_nan_of_its_logarithm(inner: str, row: Row, cause: str) -> None:
    """`exp(k * log(x))` where x is below zero, at places that the loss is multiplied with zero afterwards."""
    graph = Graph()
    logarithm = graph.op(inner, graph.op("Mul", graph.variable("scale")))
    exponent = graph.op("Mul", graph.variable("shape"), logarithm)
    power = graph.op("Exp", exponent)
    graph.gradient(exponent, row)
    graph.gradient(power, sized(0.1, zeros=0.3))
    graph.target(graph.op("Mean", power), loss=float("nan"))
    graph.ask("scale", NAN)
    graph.ask("shape", NAN)

    assert graph.only_finding().cause == cause


@pytest.mark.parametrize(("floor", "culprit"), [(1e-7, "log of the share"), (0.0, "log of the floor")])
def test_a_logarithm_of_what_has_a_floor_is_not_blamed(floor: float, culprit: str) -> None:
    """Two logarithms, and one of them is mended already."""
    graph = Graph()
    share = graph.op("Mul", graph.variable("kernel"))
    other = graph.op("Log", share, name="log of the share")
    floored = graph.op("Maximum", graph.op("Neg", share), constants={1: floor})
    product = graph.op("MatMul", graph.op("Log", floored, name="log of the floor"), other)
    graph.gradient(share, NAN)
    graph.gradient(product, NAN)
    square = graph.op("Square", product)
    graph.gradient(square, FINE)
    graph.target(graph.op("Mean", square), loss=float("nan"))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert finding.cause == "log_zero"
    assert finding.op is not None
    assert finding.op.name == culprit


@pytest.mark.parametrize(
    ("kind", "epsilon", "cause"),
    [("Abs", 1e-6, "zero_over_zero"), ("Abs", 0.0, "log_zero"), ("Neg", 1e-6, "log_zero")],
)
def test_a_logarithm_of_what_an_epsilon_keeps_above_zero_is_not_to_blame(kind: str, epsilon: float, cause: str) -> None:
    """NaN went into it, which the quotient in front of it may have made."""
    graph = Graph()
    scores = graph.op("Mul", graph.variable("kernel"))
    share = graph.op("RealDiv", scores, graph.op("Sum", scores))
    kept = graph.op("AddV2", graph.op(kind, share), constants={1: epsilon})
    graph.gradient(kept, NAN)
    log = graph.op("Log", kept)
    graph.gradient(log, sized(0.1, zeros=0.9))
    graph.target(graph.op("Mean", log), loss=float("nan"))
    graph.ask("kernel", NAN)

    assert graph.only_finding().cause == cause


@pytest.mark.parametrize(
    ("kind", "line", "single", "half"),
    [
        ("Sqrt", "y = tf.sqrt(x)", "tf.sqrt(x + 1e-12)", "tf.sqrt(x + 1e-4)"),
        ("Log", "y = tf.math.log(x)", "tf.maximum(x, 1e-7)", "tf.maximum(x, 1e-4)"),
        (
            "Acos",
            "y = tf.acos(x)",
            "tf.clip_by_value(x, -1 + 1e-6, 1 - 1e-6)",
            "tf.clip_by_value(x, -1 + 1e-3, 1 - 1e-3)",
        ),
    ],
)
def test_a_remedy_in_half_precision_holds_numbers_that_are_not_lost_there(
    kind: str, line: str, single: str, half: str
) -> None:
    for dtype, told in (("float32", single), ("float16", half)):
        graph = Graph()
        x = graph.op("Mul", graph.op("Cast", graph.variable("w"), dtype=dtype), dtype=dtype)
        graph.gradient(x, INF)
        made = graph.op(kind, x, dtype=dtype, line=line, api=line.partition("= ")[2].partition("(")[0])
        graph.gradient(made, FINE)
        graph.target(graph.op("Mean", graph.op("Cast", made)))
        graph.ask("w", INF)

        fix = graph.only_finding().fix

        assert told in fix
        assert ("lost in float16" in fix) == (dtype == "float16")


@pytest.mark.parametrize(
    ("made_of", "fix"),
    [
        (("Softmax",), "`tf.nn.log_softmax(logits)`"),
        (("Softmax", "GatherV2", "AddV2"), "`tf.nn.log_softmax(logits)`"),
        (("Sigmoid", "Maximum"), "`tf.math.log_sigmoid(logits)`"),
        (("Exp", "Sum"), "Sum in log space"),
        (("Exp", "Sum", "RealDiv"), "Sum in log space"),
        (("Exp", "Sum", "divisor"), ""),
        (("Softmax", "MatMul"), ""),
    ],
)
def test_a_logarithm_is_better_taken_before_what_it_undoes(made_of: tuple[str, ...], fix: str) -> None:
    graph = Graph()
    value = graph.op("MatMul", graph.variable("kernel"))
    for kind in made_of:
        value = graph.op("RealDiv", value, first=1) if kind == "divisor" else graph.op(kind, value)
    graph.gradient(value, INF)
    log = graph.op("Log", value, api="tf.math.log")
    graph.gradient(log, FINE)
    graph.target(graph.op("Mean", log, shape=()))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("log_zero", log)
    assert fix in finding.fix
    assert fix or ("log_softmax" not in finding.fix and "log space" not in finding.fix)


def test_a_value_that_is_used_twice_is_not_where_nan_begins_if_one_use_already_gives_nan() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    fine, shifted = graph.op("Tanh", product), graph.op("AddV2", product)
    broken = graph.op("Sin", shifted)
    for op, row in ((product, NAN), (fine, FINE), (shifted, NAN), (broken, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", graph.op("AddV2", fine, broken)))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("not_finite", broken)


@pytest.mark.parametrize("known", ["the logarithm", "both"])
def test_nan_on_its_way_to_one_factor_comes_from_the_other_one(known: str) -> None:
    """Advantages that were divided by a deviation of zero, times logarithms of probabilities."""
    graph = Graph()
    logarithm = graph.op("Log", graph.op("Softmax", graph.variable("actor")))
    graph.gradient(logarithm, NAN)
    quotient = graph.op("RealDiv", graph.op("MatMul", graph.variable("critic")), input_count=2, given={1: ()})
    if known == "both":
        graph.gradient(quotient, NAN)
    product = graph.op("Mul", logarithm, quotient)
    graph.gradient(product, FINE)
    graph.target(graph.op("Sum", product), loss=math.nan)
    graph.ask("actor", NAN)

    [finding] = graph.diagnose().findings

    assert finding.cause == ("zero_over_zero" if known == "the logarithm" else "log_zero")
