"""Zeros that are followed further: through joins, behind zero weights, into parts that were not recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.record.schema import Input, Layer
from tests.analyse.builders import FINE, ZERO, Graph, Row, sized

EMPTY: Row = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_a_relu_of_zero_weights_is_no_dead_relu() -> None:
    """Its input is zero because the weights are: bias and product vanish together."""
    graph = Graph()
    total = graph.op("BiasAdd", graph.op("MatMul", graph.variable("kernel")), graph.variable("bias"))
    relu = graph.op("Relu", total)
    for op, row in ((total, ZERO), (relu, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", relu))
    for name in ("kernel", "bias"):
        graph.ask(name, ZERO)
        graph.weights[graph.place(name)] = (0.0, 0.0)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("zero_init_product", "error")


def test_a_product_with_what_zero_weights_make_is_zero_by_design_while_they_learn() -> None:
    """adaLN-Zero: the gate is a slice of a layer that begins with zeros and gets a gradient."""
    graph = Graph()
    gate = graph.op("Split", graph.op("MatMul", graph.variable("modulation")))
    branch = graph.op("MatMul", graph.variable("branch"))
    product = graph.op("Mul", gate, branch)
    for op, row in ((gate, FINE), (branch, ZERO), (product, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", product))
    graph.ask("modulation", FINE)
    graph.ask("branch", ZERO)
    graph.weights[graph.place("modulation")] = (0.1, 0.1)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.variables) == ("zero_init_by_design", "info", ("branch",))
    assert finding.fix == "Nothing to fix: this gradient grows as that variable does."


def test_zeros_of_one_part_are_followed_behind_the_join_that_takes_them_out_again() -> None:
    graph = Graph()
    a, b = graph.op("MatMul", graph.variable("a")), graph.op("MatMul", graph.variable("b"))
    both = graph.op("ConcatV2", a, b)
    first, second = graph.op("StridedSlice", both), graph.op("StridedSlice", both)
    counted = graph.op("DivNoNan", second, api="tf.math.divide_no_nan")
    half = sized(0.5, zeros=0.5)
    for op, row in ((a, FINE), (b, ZERO), (both, half), (first, FINE), (second, ZERO), (counted, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("AddV2", first, counted))
    graph.ask("a", FINE)
    graph.ask("b", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit, finding.severity) == ("mask_multiplies_to_zero", counted, "info")


def test_the_mean_of_nothing_is_zero_over_zero() -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    chosen = graph.op("GatherV2", product, api="tf.boolean_mask")
    mean = graph.op("Mean", chosen, api="tf.reduce_mean")
    for op, row in ((product, ZERO), (chosen, EMPTY), (mean, FINE)):
        graph.gradient(op, row)
    graph.target(mean, loss=float("nan"))
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("zero_over_zero", mean)
    assert "averages an empty tensor" in finding.message


def test_dropout_that_leaves_nothing_is_neither_a_branch_nor_a_dead_relu() -> None:
    graph = Graph()
    hidden = graph.op("Relu", graph.op("MatMul", graph.variable("kernel")))
    dropped = graph.op("SelectV2", hidden, first=1, name="dropout/stateless_dropout/SelectV2")
    out = graph.op("MatMul", dropped, graph.variable("head"))
    for op, row in ((1, ZERO), (hidden, ZERO), (dropped, FINE), (out, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", out))
    graph.ask("kernel", ZERO)
    graph.ask("head", ZERO)

    assert {finding.cause for finding in graph.diagnose().findings} == {"mask_multiplies_to_zero"}


def test_a_relu_behind_a_normaliser_of_one_row_is_not_dead() -> None:
    graph = Graph()
    dense = graph.op("MatMul", graph.variable("kernel"), shape=(1, 5))
    mean = graph.op("Mean", dense, shape=(1, 5), name="bn/moments/mean")
    centred = graph.op("Sub", dense, mean, shape=(1, 5), name="bn/sub")
    relu = graph.op("Relu", centred, shape=(1, 5))
    graph.layers.append(Layer("bn", "bn", "BatchNormalization"))
    for op, row in ((dense, ZERO), (mean, ZERO), (centred, ZERO), (relu, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", relu))
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("degenerate_normalisation", mean)


def test_a_value_that_cancels_itself_is_found_inside_the_graph() -> None:
    """The ratio of a policy to itself: the mean is used twice, and the difference does not depend on it."""
    graph = Graph()
    mean = graph.op("BiasAdd", graph.op("MatMul", graph.variable("kernel")))
    new, old = graph.op("Sub", mean), graph.op("Sub", mean)
    ratio = graph.op("Sub", graph.op("Square", new), graph.op("Square", old))
    graph.gradient(1, ZERO)
    graph.gradient(mean, ZERO)
    for op in range(new, ratio + 1):
        graph.gradient(op, FINE)
    graph.target(graph.op("Mean", graph.op("Exp", ratio)))
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("gradient_cancellation", ratio)


@pytest.mark.parametrize("critic_steps", [1, 3])
def test_the_last_bias_of_two_compared_outputs_has_no_influence(critic_steps: int) -> None:
    """Also where each step of a critic reads it again, for a loss of its own."""
    graph = Graph()
    graph.variable("head/kernel")
    graph.variable("head/bias")
    sides = [
        graph.op("AddV2", graph.op("MatMul", graph.read("head/kernel")), graph.read("head/bias")) for _ in range(2)
    ]
    difference = graph.op("Sub", *sides)
    for op in range(len(graph.ops)):
        graph.gradient(op, FINE)
    graph.target(graph.op("Mean", difference))
    for _ in range(1, critic_steps):
        score = graph.op("AddV2", graph.op("MatMul", graph.read("head/kernel")), graph.read("head/bias"))
        graph.target(graph.op("Mean", score))
    graph.ask("head/kernel", FINE)
    graph.ask("head/bias", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.culprit) == ("shift_invariant_parameter", "info", difference)


@pytest.mark.parametrize(
    ("made_of", "is_of_layer"),
    [
        (("MatMul",), True),
        (("Conv2D", "Reshape"), True),
        (("MatMul", "Cast", "Squeeze"), True),
        (("MatMul", "Exp"), False),
    ],
)
def test_an_offset_on_both_sides_is_that_of_a_layer_if_it_is_added_to_a_product(
    made_of: tuple[str, ...], is_of_layer: bool
) -> None:
    """Otherwise its paths cancel for a reason that the user may not know, such as in a score of a sample."""
    graph = Graph()
    graph.variable("head/bias")
    sides = []
    for _ in range(2):
        value = graph.op("MatMul", graph.variable(f"kernel_{len(graph.variables)}"))
        for kind in made_of:
            value = graph.op(kind, value)
        sides.append(graph.op("AddV2", value, graph.read("head/bias")))
    difference = graph.op("Sub", *sides)
    for op in range(len(graph.ops)):
        graph.gradient(op, FINE)
    graph.target(graph.op("Mean", difference, shape=()))
    for each in graph.variables:
        graph.ask(each.name, ZERO if each.name == "head/bias" else FINE)

    finding = graph.only_finding()

    assert finding.culprit == difference
    assert (finding.cause, finding.severity) == (
        ("shift_invariant_parameter", "info") if is_of_layer else ("gradient_cancellation", "warning")
    )


class TestInsideOfALoop:
    def loop(self, start: Row | None, inputs: float) -> Graph:
        """A loop whose body has a tanh; where it begins is known to get a gradient, or is a constant."""
        graph = Graph()
        begin = graph.op("MatMul", graph.variable("before")) if start is not None else -1
        loop = graph.op("While", *([begin] if begin >= 0 else []), graph.op("Tanh", graph.variable("cell/kernel")))
        out = graph.op("Identity", loop)
        if start is not None:
            graph.gradient(begin, start)
            graph.ask("before", start)
        graph.gradient(out, FINE)
        graph.target(graph.op("Mean", out))
        graph.ask("cell/kernel", ZERO)
        graph.inputs.append(Input("x", graph.row(sized(inputs))))
        return graph

    def test_large_inputs_saturate_its_gates(self) -> None:
        finding = self.loop(None, 1e9).only_finding()

        assert (finding.cause, finding.op and finding.op.type) == ("saturation_sigmoid", "While")
        assert "`x` reaches 1e+09" in finding.fix

    def test_what_it_begins_with_gets_a_gradient_where_it_makes_no_round(self) -> None:
        finding = self.loop(FINE, 1.0).only_finding()

        assert (finding.cause, finding.severity) == ("branch_not_taken", "info")
        assert "ran no iterations in this step" in finding.message

    @pytest.mark.parametrize("kind", ["While", "SelectV2"])
    def test_one_that_is_skipped_does_not_hide_a_relu_that_is_dead(self, kind: str) -> None:
        graph = Graph()
        begin, kernel = graph.op("MatMul", graph.variable("before")), graph.variable("kernel")
        skipped = graph.op("Identity", graph.op(kind, begin, graph.op("Tanh", kernel)))
        product = graph.op("MatMul", kernel)
        dead = graph.op("Relu", product)
        for op, row in ((begin, FINE), (skipped, FINE), (product, ZERO), (dead, FINE)):
            graph.gradient(op, row)
        graph.target(graph.op("Mean", graph.op("AddV2", skipped, dead)))
        graph.ask("before", FINE)
        graph.ask("kernel", ZERO)

        finding = graph.only_finding()

        assert (finding.cause, finding.severity) == ("dead_relu", "error")

    def masked(
        self,
        kind: str = "SelectV2",
        after: str = "Identity",
        /,
        *,
        product: Row = FINE,
        factor: Row = ZERO,
        other: Row = FINE,
    ) -> Graph:
        """A recurrent layer that chooses between the old and the new state with an op of this kind. Its output, after
        an op of the kind `after`, is multiplied by a head, which gets `factor`, where `product` arrives; and once more,
        where it gets `other`."""
        graph = Graph()
        chosen = graph.op("Identity", graph.op(kind, graph.op("Tanh", graph.variable("cell/kernel"))))
        loop = graph.op("While", chosen, first=2, name="rnn/while")
        graph.ops[loop] = replace(graph.ops[loop], inputs=(replace(graph.ops[loop].inputs[0], carried=True),))
        output, head = graph.op(after, loop), graph.op("Identity", graph.variable("head"))
        again = graph.op("Identity", loop)
        both = [graph.op("Mul", output, head), graph.op("Mul", again, graph.op("Exp", graph.variable("scale")))]
        for op, row in ((output, FINE), (head, factor), (again, other), (both[0], product), (both[1], FINE)):
            graph.gradient(op, row)
        graph.target(graph.op("Mean", graph.op("AddV2", *both)))
        for name, row in (("cell/kernel", ZERO), ("head", factor), ("scale", FINE)):
            graph.ask(name, row)
        graph.inputs.append(Input("x", graph.row(sized(1e9))))  # may saturate gates
        return graph

    def test_a_mask_that_skips_every_iteration_is_seen_at_what_its_output_is_multiplied_by(self) -> None:
        graph = self.masked()

        finding = graph.only_finding()

        assert (finding.cause, finding.op and finding.op.name) == ("mask_multiplies_to_zero", "rnn/while")
        assert finding.variables == ("cell/kernel", "head")

    @pytest.mark.parametrize("rows", [{"factor": FINE}, {"factor": FINE, "other": ZERO}, {"product": ZERO}])
    def test_an_output_that_need_not_be_zero_is_not_blamed_on_a_mask(self, rows: dict[str, Row]) -> None:
        findings = self.masked(**rows).diagnose().findings

        assert "saturation_sigmoid" in {each.cause for each in findings if "cell/kernel" in each.variables}

    @pytest.mark.parametrize("after", ["Exp", "BiasAdd"])
    def test_zeros_of_a_skipped_loop_are_not_followed_through_an_op_that_changes_them(self, after: str) -> None:
        causes = {finding.cause for finding in self.masked("SelectV2", after).diagnose().findings}

        assert "mask_multiplies_to_zero" not in causes

    def test_a_loop_without_a_choice_has_no_mask(self) -> None:
        causes = {finding.cause for finding in self.masked("Identity").diagnose().findings}

        assert causes == {"saturation_sigmoid", "zero_gradient"}


def test_a_sign_that_no_gradient_was_recorded_at_is_found() -> None:
    graph = Graph()
    sign = graph.op("Sign", graph.variable("kernel"))
    out = graph.op("BiasAdd", graph.op("MatMul", sign))
    graph.gradient(out, FINE)
    graph.target(graph.op("Mean", out))
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_sign", sign)


@pytest.mark.parametrize("loss", [0.5, 1e-12])
def test_a_square_at_zero_is_a_goal_where_the_loss_is_zero(loss: float) -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    square = graph.op("Square", product)
    graph.gradient(product, ZERO)
    graph.gradient(square, FINE)
    graph.target(graph.op("Mean", square), loss=loss)
    graph.ask("kernel", ZERO)
    graph.weights[0] = (0.0, 0.0)

    assert graph.only_finding().severity == ("error" if loss > 1e-3 else "info")


@pytest.mark.parametrize(("gate", "cause"), [("learns", "zero_init_by_design"), ("rests", "zero_init_product")])
def test_a_zero_gate_inside_a_function_that_was_not_recorded_is_found_by_its_value(gate: str, cause: str) -> None:
    """ReZero: the blocks are functions of their own, and the head behind them multiplies by no zeros at all."""
    graph = Graph()
    alpha = graph.variable("alpha", shape=())
    branch = graph.op("MatMul", graph.variable("branch"), name="call/MatMul")
    gated = graph.op("Mul", alpha, branch, name="call/mul")
    out = graph.op("AddV2", gated, first=1, name="call/add")
    head = graph.op("MatMul", out, graph.variable("head"), name="head")
    graph.gradient(head, FINE)
    graph.target(graph.op("Mean", head))
    graph.ask("branch", ZERO)
    graph.ask("alpha", FINE if gate == "learns" else ZERO)
    graph.ask("head", FINE)
    graph.weights[graph.place("alpha")] = (0.1, 0.1) if gate == "learns" else (0.0, 0.0)
    graph.weights[graph.place("branch")] = graph.weights[graph.place("head")] = (1.0, 0.1)

    diagnosis = graph.diagnose()
    finding = next(each for each in diagnosis.findings if "branch" in each.variables)

    assert (finding.cause, finding.culprit) == (cause, gated)
    assert not diagnosis.unverified or gate == "rests"


def test_a_way_around_the_zero_gate_leaves_the_place_unknown() -> None:
    graph = Graph()
    branch = graph.op("MatMul", graph.variable("branch"), name="call/MatMul")
    gated = graph.op("Mul", graph.variable("alpha", shape=()), branch, name="call/mul")
    out = graph.op("AddV2", gated, branch, name="call/add")
    head = graph.op("MatMul", out, name="head")
    graph.gradient(head, FINE)
    graph.target(graph.op("Mean", head))
    graph.ask("branch", ZERO)
    graph.ask("alpha", FINE)
    graph.weights[graph.place("alpha")] = (0.1, 0.1)

    assert graph.only_finding().cause == "zero_gradient"


def complex_with_a_part_left_out(*, keeps: str, between: str = "Reshape") -> Graph:
    graph = Graph()
    real, imag = graph.op("MatMul", graph.variable("real")), graph.op("MatMul", graph.variable("imag"))
    both = graph.op("Complex", real, imag, dtype="complex64", api="tf.complex", line="z = tf.complex(a, b)")
    shaped = graph.op(between, both, dtype="complex64")
    kept = graph.op(keeps, shaped, api="tf.cast", line="return tf.cast(z, tf.float32)")
    lost = "real" if keeps == "Imag" else "imag"
    for op, row in ((real, FINE), (imag, FINE), (both, FINE), (shaped, FINE), (kept, FINE)):
        graph.gradient(op, ZERO if op == (real if lost == "real" else imag) else row)
    graph.target(graph.op("Mean", kept))
    for name in ("real", "imag"):
        graph.ask(name, ZERO if name == lost else FINE)
    return graph


@pytest.mark.parametrize(
    ("keeps", "lost", "part"), [("Cast", "imag", "real"), ("Real", "imag", "real"), ("Imag", "real", "imaginary")]
)
@pytest.mark.parametrize("between", ["Reshape", "MatMul"])
def test_the_part_of_a_complex_number_that_is_thrown_away_is_told(
    keeps: str, lost: str, part: str, between: str
) -> None:
    """Also behind a product with the batch: one with an imaginary part would have mixed the two."""
    finding = complex_with_a_part_left_out(keeps=keeps, between=between).only_finding()

    assert (finding.cause, finding.variables) == ("zero_gradient", (lost,))
    assert finding.op is not None
    assert finding.op.type == keeps
    assert f"keeps only the {part} part" in finding.message


def test_where_the_parts_are_mixed_nothing_is_said_to_be_thrown_away() -> None:
    finding = complex_with_a_part_left_out(keeps="Cast", between="FFT").only_finding()

    assert finding.op is not None
    assert finding.op.type == "Complex"


def test_a_slice_that_leaves_the_variables_out_is_told_as_such() -> None:
    """Tokens are joined, and the one that is taken is none of those that the class token has a part in."""
    graph = Graph()
    token, patches = graph.op("MatMul", graph.variable("cls")), graph.op("MatMul", graph.variable("patch"))
    both = graph.op("ConcatV2", token, patches)
    taken = graph.op("StridedSlice", both, line="x = x[:, -1]", api="[]")
    for op, row in ((token, ZERO), (patches, FINE), (both, sized(0.5, zeros=0.5)), (taken, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", taken))
    graph.ask("cls", ZERO)
    graph.ask("patch", FINE)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("zero_gradient", taken)
    assert "selects a part that does not depend on it" in finding.message
    assert finding.fix.startswith("Check the index, and select the part that does")


def heads_taken_apart(kind: str, *, batch: int, room: bool = True) -> Graph:
    """Boxes and classes are joined; boxes are compared as they are, classes by what `kind` makes of them."""
    graph = Graph()
    box, label = (
        graph.op("MatMul", graph.variable("box"), shape=(batch, 3)),
        graph.op("MatMul", graph.variable("label"), shape=(batch, 3)),
    )
    both = graph.op("Reshape", graph.op("ConcatV2", box, label, shape=(batch, 6)), shape=(batch, 2, 3))
    compared = graph.op("StridedSlice", both, shape=(batch, 3 if room else 6))
    chosen = graph.op(
        kind, graph.op("StridedSlice", both, shape=(batch, 3)), passes="none", dtype="int64", api="tf.argmax"
    )
    hot = graph.op("Cast", chosen, passes="dtype")
    half = sized(0.5, zeros=0.5)
    for op, row in ((box, FINE), (label, ZERO), (both - 1, half), (both, half), (compared, FINE), (hot, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("AddV2", compared, hot))
    graph.ask("box", FINE)
    graph.ask("label", ZERO)
    return graph


@pytest.mark.parametrize("batch", [4, -1])
def test_where_the_part_made_of_the_variable_is_taken_out_and_cut_the_cut_is_told(batch: int) -> None:
    finding = heads_taken_apart("ArgMax", batch=batch).only_finding()

    assert (finding.cause, finding.severity, finding.variables) == ("nondiff_index", "error", ("label",))
    assert "`label` gets a gradient of exactly zero: `tf.argmax`" in finding.message


@pytest.mark.parametrize("batch", [4, -1])
def test_where_the_parts_that_pass_a_gradient_may_hold_the_variable_they_may_be_to_blame(batch: int) -> None:
    """Also in a batch of unknown size, as in the graph of a `fit` with a smaller last batch."""
    assert heads_taken_apart("ArgMax", batch=batch, room=False).only_finding().cause == "zero_gradient"
