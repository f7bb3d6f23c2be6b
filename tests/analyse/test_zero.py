"""Exact zeros: the op is found whose incoming gradient is not zero and whose outgoing one is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, ZERO, Graph, Row, sized


def dying_at(kind: str, *, shape: tuple[int, ...] = (8, 4), **details: str) -> Graph:
    """kernel -> product -> an op that lets nothing through -> loss."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(product, ZERO)
    op = graph.op(kind, product, shape=shape, name="model/act")
    graph.gradient(op, FINE)
    graph.target(graph.op("Mean", op))
    graph.ask("kernel", ZERO)
    return graph


@pytest.mark.parametrize(
    ("kind", "cause", "severity"),
    [
        ("Relu", "dead_relu", "error"),
        ("Sigmoid", "saturation_sigmoid", "error"),
        ("Tanh", "saturation_sigmoid", "error"),
        ("Softmax", "saturation_softmax", "error"),
        ("Minimum", "saturation_clip", "error"),
        ("ClipByValue", "saturation_clip", "error"),
        ("FakeQuantWithMinMaxVars", "saturation_clip", "error"),
        ("Sign", "nondiff_sign", "error"),
        ("EagerPyFunc", "python_escape", "error"),
        ("If", "branch_not_taken", "info"),
        ("SelectV2", "branch_not_taken", "info"),
        ("Mul", "mask_multiplies_to_zero", "warning"),
        ("AnOpThatNobodyKnows", "zero_gradient", "warning"),
    ],
)
def test_the_op_where_the_gradient_turns_zero_is_named_with_its_cause(kind: str, cause: str, severity: str) -> None:
    finding = dying_at(kind).only_finding()

    assert (finding.cause, finding.severity) == (cause, severity)
    assert finding.culprit == 2
    assert finding.path == (0, 1, 2, 3)


def test_the_end_of_a_fake_quantisers_range_learns_only_from_values_outside_it() -> None:
    graph = Graph()
    values, low = graph.op("MatMul", graph.variable("kernel")), graph.op("Identity", graph.variable("low"))
    graph.gradient(values, FINE)
    graph.gradient(low, ZERO)
    quantised = graph.op("FakeQuantWithMinMaxVars", values, low)
    graph.gradient(quantised, FINE)
    graph.target(graph.op("Mean", quantised))
    graph.ask("kernel", FINE)
    graph.ask("low", ZERO)

    [finding] = graph.diagnose().findings

    assert (finding.cause, finding.variables) == ("saturation_quant_range", ("low",))


def test_a_softmax_over_one_class_is_no_saturation() -> None:
    finding = dying_at("Softmax", shape=(8, 1)).only_finding()

    assert (finding.cause, finding.severity) == ("softmax_single_class", "error")


def test_what_multiplies_with_the_output_of_a_dead_relu_dies_of_it() -> None:
    graph = Graph()
    before = graph.op("BiasAdd", graph.variable("hidden/bias"))
    graph.gradient(before, ZERO)
    relu = graph.op("Relu", before)
    graph.gradient(relu, FINE)
    product = graph.op("MatMul", relu, graph.variable("head/kernel"))
    graph.gradient(product, FINE)
    graph.target(graph.op("Mean", product))
    graph.ask("hidden/bias", ZERO)
    graph.ask("head/kernel", ZERO)

    told = {finding.variables: (finding.cause, finding.culprit) for finding in graph.diagnose().findings}

    assert told == {("hidden/bias",): ("dead_relu", relu), ("head/kernel",): ("dead_relu", product)}


class TestProductsWithAVariableOfZeros:
    """LoRA: `x @ a @ b`, with b zero at the start."""

    def lora(self, b_gradient: Row) -> Graph:
        graph = Graph()
        down = graph.op("MatMul", graph.variable("lora_a"))
        graph.gradient(down, ZERO)
        up = graph.op("MatMul", down, graph.variable("lora_b"))
        graph.gradient(up, FINE)
        graph.target(graph.op("Mean", up))
        graph.ask("lora_a", ZERO)
        graph.ask("lora_b", b_gradient)
        return graph

    def test_one_that_learns_is_by_design(self) -> None:
        graph = self.lora(FINE)
        graph.weights[1] = (0.02, 0.02)  # all of what it is now, this step gave it

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("zero_init_by_design", "info")
        assert finding.variables == ("lora_a",)

    def test_two_of_zeros_never_learn(self) -> None:
        graph = self.lora(ZERO)
        graph.weights[0] = graph.weights[1] = (0.0, 0.0)

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("zero_init_product", "error")
        assert finding.variables == ("lora_a", "lora_b")

    def test_a_variable_that_has_numbers_is_not_to_blame(self) -> None:
        assert self.lora(FINE).only_finding().cause == "zero_gradient"

    @pytest.mark.parametrize("row", [ZERO, sized(1e-12)])
    @pytest.mark.parametrize("began_at_zero", [True, False])
    def test_a_posterior_that_begins_as_the_prior_waits_for_its_mean(self, row: Row, began_at_zero: bool) -> None:
        """A Gaussian process: the kernel goes into the mean, times zeros that learn, and into the variance, twice,
        which cancels."""
        graph = Graph()
        kernel = graph.op("Exp", graph.variable("lengthscale"))
        graph.gradient(kernel, row)
        mean = graph.op("MatMul", kernel, graph.variable("q_mu"))
        less, more = graph.op("Neg", kernel), graph.op("Square", kernel)
        both = graph.op("AddV2", less, more)
        for op in (mean, less, more, both):
            graph.gradient(op, FINE)
        graph.target(graph.op("Mean", graph.op("AddV2", mean, both)))
        graph.ask("lengthscale", row)
        graph.ask("q_mu", FINE)
        if began_at_zero:
            graph.weights[1] = (0.02, 0.02)

        finding = graph.only_finding()

        waits = (finding.cause, finding.severity, finding.culprit) == ("zero_init_by_design", "info", mean)
        assert waits == began_at_zero


@pytest.mark.parametrize("left", [ZERO, sized(1e-9), sized(1e-2)], ids=["zero", "rounding", "some"])
@pytest.mark.parametrize("divides", [True, False])
def test_a_squared_distance_of_single_numbers_is_no_normalisation(divides: bool, left: Row) -> None:
    """`x*x - 2*x*y + y*y` sums the square of one number and uses the number again, as a division by its length does."""
    graph = Graph()
    point = graph.op("RealDiv", graph.variable("lengthscale"), shape=(8, 1))
    square = graph.op("Square", point, shape=(8, 1))
    total = graph.op("Sum", square, shape=(8,))
    other = graph.op("Mul", point, graph.op("Rsqrt", total)) if divides else graph.op("MatMul", point)
    for op, row in ((point, left), (square, FINE), (total, FINE), (other, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", graph.op("AddV2", total, other), shape=()))
    graph.ask("lengthscale", left)

    causes = [finding.cause for finding in graph.diagnose().findings]
    assert ("degenerate_normalisation" in causes) == (divides and left != sized(1e-2))


def test_a_slice_that_a_mask_hides_is_traced_to_the_mask() -> None:
    """Two heads side by side, the labels of one missing: up to the square, half of the gradient of both is zero."""
    graph = Graph()
    a, b = graph.variable("head_a/kernel"), graph.variable("head_b/kernel")
    out_a, out_b = graph.op("MatMul", a), graph.op("MatMul", b)
    both = graph.op("ConcatV2", out_a, out_b)
    masked = graph.op("Mul", both)
    square = graph.op("Square", masked)
    graph.target(graph.op("Mean", square))
    half = sized(0.5, zeros=0.5)
    for op, row in ((out_a, FINE), (out_b, ZERO), (both, half), (masked, half), (square, FINE)):
        graph.gradient(op, row)
    graph.ask("head_a/kernel", FINE)
    graph.ask("head_b/kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "info")
    assert (finding.variables, finding.culprit) == (("head_b/kernel",), masked)


def test_a_small_gradient_in_half_precision_underflows() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"), dtype="float16")
    graph.gradient(product, ZERO)
    scaled = graph.op("Mul", product, dtype="float16")
    graph.gradient(scaled, sized(1e-5))
    graph.target(graph.op("Mean", scaled))
    graph.ask("kernel", ZERO)

    assert graph.only_finding().cause == "fp16_underflow"


def normalised(given: tuple[int, ...], mean: tuple[int, ...]) -> Finding:
    """A kernel whose product has its mean subtracted."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("dense/kernel"), shape=given)
    graph.gradient(product, ZERO)
    middle = graph.op("Mean", product, shape=mean, name="model/bn/mean")
    graph.gradient(middle, FINE)
    normal = graph.op("Sub", product, middle, name="model/bn/sub")
    graph.gradient(normal, FINE)
    graph.layers.append(Layer("model/bn", "bn", "BatchNormalization"))
    graph.target(graph.op("Sum", normal, shape=()))
    graph.ask("dense/kernel", ZERO)
    return graph.only_finding()


@pytest.mark.parametrize(
    ("given", "mean", "fix"),
    [
        ((1, 4), (1, 4), "Use a larger batch"),
        ((1, 1), (1, 1), "Use a larger batch"),
        ((8, 1), (8, 1), "Remove the normalisation"),
        ((-1, 1), (-1, 1), "Remove the normalisation"),
        ((-1, 1), (-1,), "Remove the normalisation"),
    ],
)
def test_a_mean_over_one_element_is_a_degenerate_normalisation(
    given: tuple[int, ...], mean: tuple[int, ...], fix: str
) -> None:
    """A batch of one in a BatchNormalization, the value minus itself; or examples of one feature."""
    finding = normalised(given, mean)

    assert finding.cause == "degenerate_normalisation"
    assert finding.fix.startswith(fix)


@pytest.mark.parametrize(("given", "mean"), [((8, 4), (1, 4)), ((-1, 4), (1, 4)), ((-1, 4), (-1, 1)), ((), ())])
def test_a_mean_over_several_elements_or_over_a_batch_of_unknown_size_is_none(
    given: tuple[int, ...], mean: tuple[int, ...]
) -> None:
    assert normalised(given, mean).cause == "zero_gradient"


def test_reads_that_cancel_are_not_blamed_on_one_op() -> None:
    """`log_prob` of a sample: `(mean + noise) - mean`."""
    graph = Graph()
    sample = graph.op("AddV2", graph.variable("mean"))
    again = graph.read("mean")
    difference = graph.op("Sub", sample, again)
    for op in (0, sample, again, difference):
        graph.gradient(op, FINE)
    graph.target(graph.op("Mean", difference))
    graph.ask("mean", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("gradient_cancellation", difference)


@pytest.mark.parametrize("measured", [True, False])
def test_a_detour_around_floor_is_rounding(measured: bool) -> None:
    """`x - (x - floor(x))` has the value of floor and the gradient of nothing, also where nobody measured inside."""
    graph = Graph()
    x = graph.variable("x")
    floor = graph.op("Floor", x, passes="none")
    inner = graph.op("Sub", x, floor)
    outer = graph.op("Sub", x, inner)
    for op in (inner, outer) if measured else ():
        graph.gradient(op, FINE)
    graph.gradient(x, ZERO)
    behind = graph.op("MatMul", outer)
    graph.gradient(behind, FINE)
    graph.target(graph.op("Mean", behind))
    graph.ask("x", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_rounding", floor)
    assert "exactly zero" in finding.message


def test_an_offset_in_front_of_batch_normalisation_has_no_influence() -> None:
    graph = Graph()
    shifted = graph.op("BiasAdd", graph.variable("conv/bias"))
    graph.gradient(shifted, FINE)
    normal = graph.op("FusedBatchNormV3", shifted)
    graph.gradient(normal, FINE)
    graph.target(graph.op("Mean", normal))
    graph.ask("conv/bias", sized(1e-9))

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("shift_invariant_parameter", "info")


@pytest.mark.parametrize(("behind", "told"), [("Rsqrt", "shift_invariant_parameter"), ("Tanh", "zero_gradient")])
def test_of_a_single_factor_that_is_divided_out_no_noise_may_be_left(behind: str, told: str) -> None:
    graph = Graph()
    product = graph.op("Mul", graph.op("Tanh", graph.variable("kernel")), graph.variable("gain", shape=()))
    graph.gradient(product, FINE)
    follows = graph.op(behind, product)
    graph.gradient(follows, FINE)
    graph.target(graph.op("Mean", follows))
    graph.ask("kernel", FINE)
    graph.ask("gain", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == (told, product)
    assert ("sum to zero" in finding.message) == (told == "zero_gradient")


def test_an_offset_that_learns_in_front_of_batch_normalisation_is_no_news() -> None:
    """In inference mode the normalisation is a fixed scaling."""
    graph = Graph()
    shifted = graph.op("BiasAdd", graph.variable("conv/bias"))
    graph.gradient(shifted, FINE)
    graph.target(graph.op("FusedBatchNormV3", shifted))
    graph.ask("conv/bias", FINE)

    assert graph.diagnose().findings == ()


def test_the_state_weights_of_a_single_time_step() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("lstm/lstm_cell/recurrent_kernel"))
    graph.gradient(product, FINE)
    graph.target(graph.op("Mean", product))
    graph.ask("lstm/lstm_cell/recurrent_kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("recurrent_weight_single_step", product)


def test_a_sum_over_a_softmax_is_constant() -> None:
    """Every element gets the same gradient; what is left of it is rounding noise, and need not be zero."""
    graph = Graph()
    softmax = graph.op("Softmax", graph.op("MatMul", graph.variable("kernel")))
    graph.gradient(softmax, (1.0, 0.25, 0.25, 0.0, 0.0, 0.0))
    graph.target(graph.op("Sum", softmax))
    graph.ask("kernel", sized(2e-7))

    assert graph.only_finding().cause == "normalised_then_summed"


def test_a_zero_inside_a_function_is_told_with_what_is_not_known() -> None:
    """The ops of a branch have no gradients of their own: the `If` behind them is the first that has."""
    graph = Graph()
    inside = graph.op("Relu", graph.op("MatMul", graph.variable("kernel")))
    chosen = graph.op("If", inside, first=1, name="cond")
    graph.gradient(chosen, FINE)
    graph.target(graph.op("Mean", chosen))
    graph.ask("kernel", ZERO)

    diagnosis = graph.diagnose()

    assert [finding.cause for finding in diagnosis.findings] == ["branch_not_taken"]
    assert "`cond`" in diagnosis.unverified[-1]


@pytest.mark.parametrize("shape", [(8, 4), ()], ids=["features", "a loss"])
def test_a_fade_between_two_ways_leaves_one_out(shape: tuple[int, ...]) -> None:
    """A GAN that grows fades its new layers in, `alpha * new + (1 - alpha) * old`; at last old is gone. A term of the
    loss joins later, as that of a VAE's prior whose weight is raised from zero."""
    graph = Graph()
    new, old = graph.variable("new/kernel"), graph.variable("old/kernel")
    seen, unseen = graph.op("MatMul", new), graph.op("MatMul", old)
    kept, faded = graph.op("Mul", seen, shape=shape), graph.op("Mul", unseen, shape=shape)
    mixed = graph.op("AddV2", kept, faded, shape=shape)
    graph.target(graph.op("Mean", mixed))
    for op, row in ((seen, FINE), (unseen, ZERO), (kept, FINE), (faded, FINE), (mixed, FINE)):
        graph.gradient(op, row)
    graph.ask("new/kernel", FINE)
    graph.ask("old/kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.culprit) == ("mask_multiplies_to_zero", "info", faded)


@pytest.mark.parametrize("constant", [True, False])
def test_a_term_that_a_constant_takes_out_or_that_is_all_there_is_is_looked_at(constant: bool) -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    term = graph.op("Mean", product, shape=())
    weighed = graph.op("Mul", term, shape=(), constants={1: 0.0} if constant else None)
    for op, row in ((product, ZERO), (term, ZERO), (weighed, FINE)):
        graph.gradient(op, row)
    total = weighed
    if constant:
        total = graph.op(
            "AddV2", weighed, graph.op("Mean", graph.op("MatMul", graph.variable("other")), shape=()), shape=()
        )
        graph.ask("other", FINE)
    graph.target(total)
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "warning")


@pytest.mark.parametrize("faded", [True, False])
def test_a_second_derivative_of_zero_explains_its_own_way_alone(faded: bool) -> None:
    """The penalty on a gradient of a critic adds nothing for a layer of leaky ReLUs; the fade stops the rest."""
    graph = Graph()
    kernel = graph.variable("from_rgb/kernel")
    slope = graph.op("LeakyReluGrad", kernel)
    graph.ops[slope] = replace(graph.ops[slope], backward=True)
    score = graph.op("MatMul", kernel)
    product = graph.op("Mul", score) if faded else score
    total = graph.op("AddV2", slope, product)
    graph.target(graph.op("Mean", total))
    for op, row in ((total, FINE), (slope, FINE), (product, FINE if faded else ZERO), (score, ZERO)):
        graph.gradient(op, row)
    graph.ask("from_rgb/kernel", ZERO)

    finding = graph.only_finding()

    assert finding.cause == ("mask_multiplies_to_zero" if faded else "second_order_missing")


def twice_differentiated(
    kind: str = "ReluGrad", *, slope: bool = True, inner: bool = True, row: Row | None = ZERO
) -> Graph:
    """A kernel that gets a gradient from a loss, and `row` from a second target: the product of an inner gradient with
    the slope of an activation. Whether the slope and the product belong to that inner gradient."""
    graph = Graph()
    kernel = graph.variable("kernel")
    flat = graph.op(kind, graph.op("MatMul", kernel))
    product = graph.op("Mul", flat)
    for op, backward in ((flat, slope), (product, inner)):
        graph.ops[op] = replace(graph.ops[op], backward=backward)
    graph.target(graph.op("Mean", graph.op("Square", kernel)))
    graph.target(product)
    graph.ask("kernel", FINE)
    graph.ask("kernel", row, target=1)
    return graph


def test_a_second_derivative_of_zero_is_found_although_the_variable_gets_a_gradient_from_a_loss() -> None:
    finding = twice_differentiated().only_finding()

    assert (finding.cause, finding.op and finding.op.type) == ("second_order_missing", "ReluGrad")


@pytest.mark.parametrize(
    "graph",
    [
        twice_differentiated(row=FINE),
        twice_differentiated(row=None),
        twice_differentiated("SigmoidGrad"),
        twice_differentiated(slope=False),
        twice_differentiated(inner=False),
    ],
)
def test_a_second_derivative_that_need_not_be_zero_is_not_reported(graph: Graph) -> None:
    assert graph.diagnose().findings == ()


def test_a_choice_between_two_values_is_no_limit_where_the_other_one_gets_a_gradient() -> None:
    """A clipped surrogate whose advantages are all zero: the product makes the zeros, and nothing is learned."""
    graph = Graph()
    ratio = graph.op("Exp", graph.variable("policy"))
    free = graph.op("Mul", ratio, name="free")
    clipped = graph.op("Mul", graph.op("ClipByValue", ratio), name="clipped")
    smaller = graph.op("Minimum", free, clipped)
    for op, row in ((ratio, ZERO), (free, FINE), (clipped, ZERO), (smaller, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", smaller))
    graph.losses = [0.0]
    graph.ask("policy", ZERO)
    finding = graph.only_finding()
    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "warning")
    assert finding.op is not None
    assert finding.op.name == "free"


def test_a_state_of_zeros_is_told_beside_a_softmax_of_one_class_on_the_other_way() -> None:
    graph = Graph()
    kernel = graph.op("MatMul", graph.variable("decoder/gru_cell/kernel"))
    state = graph.op("MatMul", graph.variable("decoder/gru_cell/recurrent_kernel"))
    hidden = graph.op("AddV2", kernel, state)
    query = graph.op("MatMul", hidden, graph.variable("attention/kernel"), shape=(3, 1))
    weights = graph.op("Softmax", query, shape=(3, 1))
    for op in (kernel, state, hidden, weights):
        graph.gradient(op, FINE)
    graph.gradient(query, ZERO)
    graph.target(graph.op("Mean", graph.op("Mul", hidden, weights)))
    graph.ask("decoder/gru_cell/kernel", FINE)
    graph.ask("decoder/gru_cell/recurrent_kernel", ZERO)
    graph.ask("attention/kernel", ZERO)

    told = {finding.cause: finding.variables for finding in graph.diagnose().findings}

    assert told["recurrent_weight_single_step"] == ("decoder/gru_cell/recurrent_kernel",)
    assert told["softmax_single_class"] == ("attention/kernel",)


@pytest.mark.parametrize(("update", "moves"), [(0.1, True), (0.0, False)])
def test_what_moves_a_weight_without_a_gradient_is_said_after_what_to_mend(update: float, moves: bool) -> None:
    graph = dying_at("Relu")
    graph.weights[0] = (1.0, update)

    finding = graph.only_finding()

    assert ("It moves anyway, by 0.1 in this step" in finding.message) is moves
    assert finding.fix.endswith("in such steps, use an optimizer without state, `keras.optimizers.SGD()`.") is moves
    assert not finding.fix.startswith(" To keep")


@pytest.mark.parametrize(("step", "began", "severity"), [(0, 0.1, "info"), (0, 1.0, "warning"), (1, 0.1, "warning")])
def test_what_begins_as_zeros_may_get_none_in_the_first_step(step: int, began: float, severity: str) -> None:
    """The last bias of a network that is odd at first: over points on both sides of the origin its errors cancel."""
    graph = Graph()
    last = graph.op("BiasAdd", graph.op("MatMul", graph.variable("kernel")), graph.variable("bias"))
    graph.gradient(last, FINE)
    graph.target(graph.op("Mean", graph.op("Square", last)))
    graph.ask("kernel", FINE)
    graph.ask("bias", ZERO)
    graph.weights[1] = (began, 0.1)

    [finding] = graph.diagnose(step=step).findings

    assert (finding.cause, finding.severity) == ("zero_gradient", severity)


@pytest.mark.parametrize(
    ("between", "shape", "severity"),
    [
        (("Sigmoid",), (4, 3), "error"),
        (("Cast", "Sigmoid", "Cast"), (4, 3), "error"),
        (("Exp",), (4, 3), "info"),  # an op that may mix the units, so far as is known
        (("Sigmoid",), (3,), "info"),  # a bias: the layer has a kernel, which may tell the units apart
    ],
)
def test_units_that_start_equal_stay_equal_if_the_next_layer_starts_at_zero_too(
    between: tuple[str, ...], shape: tuple[int, ...], severity: str
) -> None:
    graph = Graph()
    hidden = graph.op("MatMul", graph.variable("hidden", shape=shape))
    value = hidden
    for kind in between:
        value = graph.op(kind, value)
    head = graph.op("MatMul", value, graph.variable("head/kernel", shape=(3, 1)))
    for op in range(hidden, head):
        graph.gradient(op, ZERO)
    graph.gradient(head, FINE)
    graph.target(graph.op("Mean", head, shape=()))
    graph.ask("hidden", ZERO)
    graph.ask("head/kernel", FINE)
    for place, update in ((0, 0.0), (1, 0.1)):  # both were zero before the step
        graph.weights[place] = (update, update)

    finding = graph.only_finding()

    assert (finding.severity, finding.variables) == (severity, ("hidden",))
    assert finding.cause == ("zero_init_product" if severity == "error" else "zero_init_by_design")


def test_a_vector_of_one_that_is_divided_by_its_length_is_told_although_a_penalty_gives_a_gradient() -> None:
    graph = Graph()
    weight = graph.variable("weight")
    value = graph.op("MatMul", weight, shape=(8, 1))
    square = graph.op("Square", value, shape=(8, 1))
    total = graph.op("Sum", square, shape=(8,))
    unit = graph.op("Mul", value, graph.op("Rsqrt", total))
    beside = graph.op("Mean", graph.op("Square", graph.op("Exp", weight)), shape=())
    for op, row in ((value, ZERO), (square, FINE), (total, FINE), (unit, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("AddV2", graph.op("Mean", unit, shape=()), beside, shape=()))
    graph.ask("weight", FINE)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.culprit) == ("degenerate_normalisation", "error", unit)
    assert "gets no gradient except from a penalty" in finding.message
