"""Remedies that fit what the user wrote: which value has to be safe, what a rank is, what a straight-through keeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, NAN, ZERO, Graph, sized


def hidden_division(line: str) -> Finding:
    graph = Graph()
    total = graph.op("Sum", graph.variable("table"))
    graph.gradient(total, NAN)
    graph.gradient(1, NAN)
    mean = graph.op("RealDiv", total, line=line)
    graph.gradient(mean, sized(0.1, zeros=0.4))
    chosen = graph.op("SelectV2", mean, first=1)
    graph.gradient(chosen, FINE)
    graph.target(graph.op("Mean", chosen), loss=0.5)
    graph.ask("table", NAN)
    return graph.only_finding()


@pytest.mark.parametrize(
    ("line", "finite"),
    [
        (
            "m = tf.reduce_sum(e * m, 1) / tf.reduce_sum(m, 1)",
            "tf.math.divide_no_nan(tf.reduce_sum(e * m, 1), tf.reduce_sum(m, 1))",
        ),
        ("m = total / tf.sqrt(v)", "total / tf.sqrt(tf.maximum(v, 1e-12))"),
        ("m = total / n", "tf.math.divide_no_nan(total, n)"),
        ("m = total / tf.norm(v, axis=-1)", "total / tf.sqrt(tf.maximum(tf.reduce_sum(tf.square(v), axis=-1), 1e-12))"),
    ],
)
def test_a_division_that_a_where_hides_elsewhere_is_kept_finite_by_itself(line: str, finite: str) -> None:
    finding = hidden_division(line)

    assert finding.cause == "where_inactive_branch"
    assert f"`{finite}` instead of `{line.removeprefix('m = ')}`" in finding.fix


@pytest.mark.parametrize(("kind", "words"), [("Angle", "0 + 0j"), ("Atan2", "two zeros")])
def test_the_angle_of_zero_is_zero_over_zero(kind: str, words: str) -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(product, NAN)
    angle = graph.op(kind, product, api="tf.math.angle", line="phase = tf.math.angle(z)")
    graph.gradient(angle, FINE)
    graph.target(graph.op("Mean", angle))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert finding.cause == "zero_over_zero"
    assert words in finding.message
    assert "divide_no_nan" not in finding.fix


def argsorted(*, gathers: bool, line: str = "order = tf.argsort(v)") -> Finding:
    graph = Graph()
    order = graph.op("TopKV2", graph.variable("v"), passes="yes", dtype="int32", api="tf.argsort", line=line)
    if gathers:
        graph.target(graph.op("Mean", graph.op("GatherV2", order, first=1, passes="none")))
    else:
        again = graph.op("TopKV2", order, passes="dtype", dtype="int32", api="tf.argsort", line="r = tf.argsort(order)")
        graph.target(graph.op("Mean", graph.op("Cast", again, passes="dtype")))
    graph.ask("v")
    return graph.only_finding()


def test_whoever_puts_others_in_order_is_told_to_do_so_softly() -> None:
    fix = argsorted(gathers=True).fix
    assert "`p = tf.nn.softmax(-tf.abs(tf.sort(v)[..., :, None] - v[..., None, :]) / 0.1)`" in fix


def test_whoever_computes_with_an_order_is_told_to_rank_softly() -> None:
    assert "tf.sigmoid((v[..., :, None] - v[..., None, :]) / 0.1)" in argsorted(gathers=False).fix
    down = argsorted(gathers=False, line="order = tf.argsort(v, direction='DESCENDING')")
    assert "tf.sigmoid((v[..., None, :] - v[..., :, None]) / 0.1)" in down.fix


def straight_through(*, rounds: bool, kept: bool = True) -> Finding:
    """`x + stop_gradient(q - x)`, of which the step size is in q alone."""
    graph = Graph()
    x, step = graph.variable("x"), graph.variable("step")
    q = graph.op("Mul", x, step)
    if rounds:
        q = graph.op("Mul", graph.op("Round", q, passes="none", api="tf.round", line="q = tf.round(x / s) * s"), step)
    line = "return x + tf.stop_gradient(q - x)"
    stopped = graph.op(
        "StopGradient", graph.op("Sub", q, x), passes="not_differentiable", api="tf.stop_gradient", line=line
    )
    graph.target(graph.op("Mean", graph.op("AddV2", graph.read("x") if kept else graph.variable("y"), stopped)))
    graph.ask("step")
    return graph.only_finding()


def test_a_scale_inside_a_straight_through_is_taken_out_of_it() -> None:
    finding = straight_through(rounds=True)

    assert "passes the gradient only to `x`" in finding.message
    assert "On another path `tf.round` (model.py:17) blocks the gradient too." in finding.message
    assert "Apply it only to the rounding" in finding.fix


def test_a_codebook_inside_a_straight_through_is_given_a_loss() -> None:
    assert "`q - tf.stop_gradient(x)`" in straight_through(rounds=False).fix


def test_a_stop_gradient_that_something_else_is_added_to_is_no_straight_through() -> None:
    assert "alone" not in straight_through(rounds=False, kept=False).message


@pytest.mark.parametrize(("kind", "own"), [("Mul", True), ("AddV2", False)])
def test_what_weighs_another_part_of_the_loss_is_given_a_loss_of_its_own(kind: str, own: bool) -> None:
    """The advantage of a policy: without the stop its critic would be trained to please the policy."""
    graph = Graph()
    line = "advantage = tf.stop_gradient(r - value)"
    gain = graph.op("Sub", graph.variable("value/kernel"), first=1)
    held = graph.op("StopGradient", gain, passes="not_differentiable", api="tf.stop_gradient", line=line)
    graph.target(graph.op("Mean", graph.op(kind, graph.op("Log", graph.variable("policy/kernel")), held)))
    graph.ask("value/kernel")
    graph.ask("policy/kernel", FINE)

    finding = graph.only_finding()

    assert finding.cause == "stop_gradient_misuse"
    assert ("keep it and give `value/kernel` its own loss term" in finding.fix) == own


def test_what_a_function_stops_inside_for_itself_is_not_called_a_cut() -> None:
    graph = Graph()
    x = graph.variable("x")
    inside = graph.op("StopGradient", x, passes="not_differentiable", api="keras.ops.layer_normalization")
    rounded = graph.op("Round", x, passes="none", api="tf.round", line="r = tf.round(x)")
    graph.target(graph.op("AddV2", inside, rounded))
    graph.ask("x")

    finding = graph.only_finding()

    assert finding.cause == "nondiff_rounding"
    assert "either" not in finding.message


def test_what_else_that_function_computes_of_it_is_no_cut_of_the_users() -> None:
    """`tf.reduce_logsumexp` asks whether its maximum is finite before it stops it."""
    graph = Graph()
    x = graph.variable("x")
    name, api = "ReduceLogSumExp", "tf.reduce_logsumexp"
    finite = graph.op("IsFinite", x, passes="not_differentiable", dtype="bool", api=api, name=f"{name}/IsFinite")
    chosen = graph.op("SelectV2", finite, passes="dtype", api=api, name=f"{name}/SelectV2")
    inside = graph.op("StopGradient", chosen, passes="not_differentiable", api=api, name=f"{name}/StopGradient")
    rounded = graph.op("Round", x, passes="none", api="tf.round", line="r = tf.round(x)")
    graph.target(graph.op("AddV2", inside, rounded))
    graph.ask("x")

    assert "either" not in graph.only_finding().message


def test_what_ends_a_loop_is_not_blended() -> None:
    graph = Graph()
    less = graph.op("Less", graph.variable("end"), passes="not_differentiable", dtype="bool", line="return t < end")
    graph.target(graph.op("Mean", graph.op("While", less, first=1, passes="dtype")))
    graph.ask("end")

    finding = graph.only_finding()

    assert finding.cause == "predicate_only"
    assert "only used to end a loop" in finding.message
    assert "fixed number of iterations" in finding.fix


def limited(*, chooses: bool = False, logarithm: bool = False, exponential: bool = False) -> Finding:
    graph = Graph()
    value = graph.op("Exp" if exponential else "Mul", graph.variable("w"))
    if exponential:
        value = graph.op("Sum", graph.op("Mul", graph.op("RealDiv", value)))
    graph.gradient(1, ZERO)
    clipped = graph.op("Minimum", value, api="tf.minimum", line="c = tf.minimum(r, 1.2)", constants={1: 1.2})
    graph.gradient(clipped, FINE)
    last = graph.op("Mul", clipped)
    if chooses:
        last = graph.op("Minimum", graph.op("Mul", value), last, api="tf.minimum", line="s = tf.minimum(r * a, c * a)")
    if logarithm:
        last = graph.op("Log", clipped)
    graph.gradient(last, FINE)
    graph.target(graph.op("Mean", last))
    graph.ask("w", ZERO)
    return graph.only_finding()


def test_a_limit_that_a_minimum_chose_over_the_value_itself_is_no_place_for_a_straight_through() -> None:
    finding = limited(chooses=True)

    assert finding.cause == "saturation_clip"
    assert "selects the clipped value everywhere, not `r` itself" in finding.message
    assert "stop_gradient" not in finding.fix


def test_a_limit_in_front_of_a_logarithm_is_no_place_for_one_either() -> None:
    assert "stop_gradient" not in limited(logarithm=True).fix
    assert "tf.reduce_logsumexp" in limited(logarithm=True, exponential=True).fix
    assert "tf.stop_gradient(tf.minimum(r, 1.2) - r)" in limited().fix


def test_a_weight_of_a_layer_that_is_used_is_not_told_to_call_it() -> None:
    graph = Graph()
    graph.variable("crf/transitions", read=False)
    graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("crf/kernel"))))
    graph.ask("crf/transitions")
    graph.ask("crf/kernel", FINE)

    fix = graph.only_finding().fix

    assert fix == "Use `crf/transitions` in what `crf` computes for the loss, or remove it."


@pytest.mark.parametrize(
    ("layer", "says"), [("stn", "Use `warped` (model.py:17)"), ("stn/theta", "the output of `stn/theta`")]
)
def test_what_a_line_behind_the_layer_makes_of_its_output_is_what_to_use(layer: str, says: str) -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("stn/theta/kernel"))
    graph.op("Reshape", product, name="m/warp/Reshape", api="tf.reshape", line="warped = tf.reshape(out, shape)")
    graph.layers.append(Layer("m/warp", layer, "Layer"))
    graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("other/kernel"))))
    graph.ask("stn/theta/kernel")
    graph.ask("other/kernel", FINE)

    assert says in graph.only_finding().fix


@pytest.mark.parametrize(("name", "fix"), [("dense/bias", "use_bias=False"), ("user_bias/embeddings", "without it")])
def test_only_the_bias_of_a_layer_has_a_switch(name: str, fix: str) -> None:
    graph = Graph()
    shifted = graph.op("BiasAdd", graph.variable(name))
    graph.gradient(shifted, FINE)
    normal = graph.op("FusedBatchNormV3", shifted)
    graph.gradient(normal, FINE)
    graph.target(graph.op("Mean", normal))
    graph.ask(name, sized(1e-9))

    finding = graph.only_finding()

    assert finding.cause == "shift_invariant_parameter"
    assert fix in finding.fix


def test_a_factor_that_a_second_derivative_makes_zero_is_told_by_the_relu() -> None:
    graph = Graph()
    slope = graph.op("ReluGrad", graph.variable("kernel"), first=1, constants={0: 0.0}, name="gradient_tape/ReluGrad")
    curvature = graph.op("AddN", graph.op("MatMul", slope), constants={1: 0.0}, name="gradient_tape/AddN")
    for inner in (slope, curvature):
        graph.ops[inner] = replace(graph.ops[inner], backward=True)
    rate = graph.variable("rate")
    product = graph.op("Mul", rate, curvature, line="residual = rate * u_xx")
    graph.gradient(product, FINE)
    graph.gradient(rate, ZERO)
    graph.target(graph.op("Mean", product))
    graph.ask("rate", ZERO)
    graph.ask("kernel", FINE)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("second_order_missing", slope)
    assert "tf.nn.softplus" in finding.fix


def test_what_is_given_no_rows_is_not_called_masked() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("expert"), line="h = rows @ expert")
    graph.gradient(product, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    graph.gradient(0, ZERO)
    graph.target(graph.op("Mean", product))
    graph.ask("expert", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "info")
    assert "no row was selected" in finding.message


def test_a_sample_that_is_made_of_its_mean_is_stopped_by_its_name() -> None:
    graph = Graph()
    mean = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(mean, ZERO)
    graph.gradient(0, ZERO)
    sample = graph.op("AddV2", mean, graph.op("RandomStandardNormal"))
    graph.gradient(sample, FINE)
    apart = graph.op("Sub", sample, mean, api="-", line="z = (action - mean) / std")
    graph.gradient(apart, FINE)
    graph.target(graph.op("Mean", graph.op("Square", apart)))
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert finding.cause == "gradient_cancellation"
    assert "`tf.stop_gradient(action) - mean`" in finding.fix


def policy_gradient(weight: str) -> Finding:
    """A stopped return weighs the density of an action, whose mean falls out of it on the way."""
    graph = Graph()
    mean = graph.op("MatMul", graph.variable("mean"))
    action = graph.op("AddV2", mean, name="Normal/sample/add")
    stopped = graph.op(
        "StopGradient", action, passes="not_differentiable", api="tf.stop_gradient", line="r = reward(a)"
    )
    density = graph.op("Neg", graph.variable("scale"), name=f"{weight}/log_prob/Neg", line="l = d.log_prob(a) * r")
    graph.target(graph.op("Mean", graph.op("Mul", density, stopped)))
    graph.ask("mean")
    graph.ask("scale", FINE)
    return graph.only_finding()


def test_the_density_of_an_own_sample_is_told_rather_than_what_weighs_it() -> None:
    finding = policy_gradient("Normal_1")

    assert finding.cause == "gradient_cancellation"
    assert "`d.log_prob` (" in finding.message
    assert "`d.log_prob(tf.stop_gradient(a))`" in finding.fix


def test_the_density_of_another_distribution_has_no_part_in_it() -> None:
    assert policy_gradient("Other").cause == "stop_gradient_misuse"


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (
            "return ops.where(x > 0, self.tone(x), 0.0)",
            "as well: `ok = x > 0`, `safe = keras.ops.where(ok, x, 1.0)`, and use `ops.power(safe, self.gamma)`",
        ),
        ("return f(x)", "`ops.power(keras.ops.maximum(x, 1e-12), self.gamma)` instead"),
    ],
)
def test_what_is_made_safe_is_made_so_by_the_users_own_condition(chosen: str, told: str) -> None:
    graph = Graph()
    power = graph.op("Pow", graph.variable("gamma"), api="keras.ops.power", line="t = ops.power(x, self.gamma)")
    graph.gradient(0, NAN)
    graph.gradient(power, sized(0.1, zeros=0.4))
    kept = graph.op("SelectV2", power, first=1, api="keras.ops.where", line=chosen)
    graph.gradient(kept, FINE)
    graph.target(graph.op("Mean", kept), loss=0.5)
    graph.ask("gamma", NAN)

    finding = graph.only_finding()

    assert told in finding.fix
    assert "ops.where` (" in finding.message


@pytest.mark.parametrize(
    ("line", "side", "told"),
    [
        (
            "return tf.where(p > 0, n * tf.math.log(p), 0.0)",
            1,
            "`ok = p > 0`, `safe = tf.where(ok, p, 1.0)`, then `tf.where(ok, n * tf.math.log(safe), 0.0)`",
        ),
        (
            "return tf.where(p <= 0, 0.0, tf.math.log(p))",
            2,
            "`ok = p > 0`, `safe = tf.where(ok, p, 1.0)`, then `tf.where(ok, tf.math.log(safe), 0.0)`",
        ),
        (
            "return tf.where(empty, x=0.0, y=tf.math.log(p))",
            2,
            "`ok = ~empty`, `safe = tf.where(ok, p, 1.0)`, then `tf.where(ok, tf.math.log(safe), 0.0)`",
        ),
        (
            "return tf.where(p > 9, p, tf.math.log(p))",
            2,
            "`ok = p <= 9`, `safe = tf.where(ok, p, 1.0)`, then `tf.where(ok, tf.math.log(safe), p)`",
        ),
        (
            "return tf.where(p < 1, tf.math.log(1 - tf.pow(p, 2)), 0.0)",
            1,
            "`ok = p < 1`, `safe = tf.where(ok, 1 - tf.pow(p, 2), 1.0)`, then `tf.where(ok, tf.math.log(safe), 0.0)`",
        ),
    ],
)
def test_what_is_hidden_where_the_condition_holds_is_safe_where_it_does_not(line: str, side: int, told: str) -> None:
    graph = Graph()
    logarithm = graph.op("Log", graph.variable("p"), api="tf.math.log", line=line)
    graph.gradient(0, NAN)
    graph.gradient(logarithm, sized(0.1, zeros=0.4))
    kept = graph.op("SelectV2", logarithm, first=side, api="tf.where", line=line)
    graph.gradient(kept, FINE)
    graph.target(graph.op("Mean", kept), loss=0.5)
    graph.ask("p", NAN)

    assert graph.only_finding().fix == f"Make the input safe as well: {told}."
