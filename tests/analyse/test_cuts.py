"""Cuts: one test a cause, and the verdict where several fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import SNAPSHOT, Edge, Layer, Tensor
from tests.analyse.builders import FINE, Graph


def finding_at(kind: str, *, line: str | None = None, dtype: str = "float32", **details: Any) -> Finding:
    """`threshold` -> an op that passes nothing -> a product with a kernel that does learn -> loss."""
    graph = Graph()
    threshold, kernel = graph.variable("filter/threshold"), graph.variable("dense/kernel")
    details.setdefault("passes", "not_differentiable")
    blocked = graph.op(kind, threshold, line=line, dtype=dtype, **details)
    number = blocked if dtype == "float32" else graph.op("Cast", blocked, passes="dtype")
    graph.target(graph.op("Mean", graph.op("Mul", number, kernel)))
    graph.ask("filter/threshold")
    graph.ask("dense/kernel", FINE)
    return graph.only_finding()


@pytest.mark.parametrize(
    ("kind", "dtype", "cause"),
    [
        ("Round", "float32", "nondiff_rounding"),
        ("Floor", "float32", "nondiff_rounding"),
        ("Ceil", "float32", "nondiff_rounding"),
        ("FloorDiv", "float32", "nondiff_rounding"),
        ("Less", "bool", "nondiff_comparison"),
        ("GreaterEqual", "bool", "nondiff_comparison"),
        ("ArgMax", "int64", "nondiff_index"),
        ("NonMaxSuppressionV3", "int32", "nondiff_index"),
        ("HistogramFixedWidth", "int32", "nondiff_counting"),
        ("DenseBincount", "float32", "nondiff_counting"),
        ("Multinomial", "int64", "nondiff_sampling"),
        ("StatelessRandomPoisson", "float32", "nondiff_sampling"),
        ("Cast", "int32", "integer_dtype"),
        ("HSVToRGB", "float32", "nondiff_op"),
        ("AnOpThatNobodyKnows", "float32", "nondiff_op"),
        ("PyFunc", "float32", "python_escape"),
        ("StopGradient", "float32", "stop_gradient_misuse"),
    ],
)
def test_the_op_where_structure_cuts_is_named_with_its_cause(kind: str, dtype: str, cause: str) -> None:
    finding = finding_at(kind, dtype=dtype, line="y = f(x)")

    assert (finding.cause, finding.severity) == (cause, "error")
    assert finding.variables == ("filter/threshold",)
    assert finding.op is not None
    assert finding.op.type == kind
    assert finding.source is not None
    assert finding.source.line == 17


def test_the_path_leads_from_the_variable_over_the_culprit_to_the_loss() -> None:
    finding = finding_at("Round")

    assert finding.path == (0, 2, 3, 4)
    assert finding.culprit == 2


def test_sequence_mask_is_a_comparison_though_it_casts_first() -> None:
    """The lengths become integers only so that they can be compared."""
    graph = Graph()
    threshold = graph.variable("step_filter/threshold")
    line = "mask = tf.sequence_mask(threshold, width, dtype=tf.float32)"
    cast = graph.op("Cast", threshold, passes="none", dtype="int32", api="tf.sequence_mask", line=line)
    less = graph.op("Less", cast, passes="not_differentiable", dtype="bool", api="tf.sequence_mask", line=line)
    graph.target(graph.op("Mean", graph.op("Mul", graph.op("Cast", less, passes="dtype"))))
    graph.ask("step_filter/threshold")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_comparison", less)
    assert finding.message == (
        "`step_filter/threshold` gets no gradient: `tf.sequence_mask` (model.py:17) only compares it with positions, "
        "and a comparison has no derivative."
    )
    assert finding.fix == (
        "Use a soft step, for example "
        "`tf.sigmoid((threshold[..., None] - tf.range(width, dtype=tf.float32) - 0.5) / 0.2)`."
    )


@pytest.mark.parametrize("rounding", [True, False])
def test_a_number_made_an_integer_to_index_with_is_an_index(rounding: bool) -> None:
    graph = Graph()
    position, table = graph.variable("position"), graph.variable("table")
    value = graph.op("Floor", position, passes="none") if rounding else position
    index = graph.op("Cast", value, passes="none", dtype="int32")
    rows = graph.op("GatherV2", table, index, passes=("yes", "dtype"))
    graph.target(graph.op("Mean", rows))
    graph.ask("position")
    graph.ask("table", FINE)

    finding = graph.only_finding()

    assert finding.cause == "nondiff_index"
    assert finding.culprit == 2


@pytest.mark.parametrize(
    ("layer", "told"), [("Embedding", "An `Embedding` expects integer ids"), ("Lookup", "Interpolate")]
)
def test_an_index_is_one_where_negative_ones_are_counted_from_the_end(layer: str, told: str) -> None:
    """So Keras takes rows, in `Embedding`: `tf.where(i < 0, i + size, i)`."""
    graph = Graph()
    graph.layers = [Layer("words", "words", layer)]
    index = graph.op("Cast", graph.variable("kernel"), passes="none", dtype="int32", name="words/Cast")
    below = graph.op("Less", index, passes="dtype", dtype="bool")
    wrapped = graph.op("AddV2", index, passes="dtype", dtype="int32")
    chosen = graph.op("SelectV2", below, wrapped, index, passes="dtype", dtype="int32")
    graph.target(graph.op("Mean", graph.op("GatherV2", chosen, passes="dtype", first=1)))
    graph.ask("kernel")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_index", index)
    assert told in finding.fix


def test_rounding_a_coordinate_that_is_also_a_value_is_rounding() -> None:
    graph = Graph()
    floor = graph.op("Floor", graph.variable("position"), passes="none")
    index = graph.op("Cast", floor, passes="none", dtype="int32")
    rows = graph.op("GatherV2", index, passes="dtype", first=1)
    graph.target(graph.op("Mean", graph.op("Mul", rows, floor)))
    graph.ask("position")

    assert graph.only_finding().cause == "nondiff_rounding"


@pytest.mark.parametrize("api", ["tf.math.top_k", None])
def test_the_indices_of_top_k_are_its_own_doing(api: str | None) -> None:
    """Also where a package calls it, as a recommender's retrieval does."""
    graph = Graph()
    top = graph.op("TopKV2", graph.variable("scores"), dtype="int32", api=api)
    graph.target(graph.op("Mean", graph.op("Cast", top, passes="dtype")))
    graph.ask("scores")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_index", top)
    assert "tf.math.top_k(x, k).values" in finding.fix


@pytest.mark.parametrize("first", ["ArgMax", "Round", "Greater"])
def test_an_error_rate_is_counting_whatever_makes_the_decision(first: str) -> None:
    """argmax, then `!=`, then the mean of zeros and ones: none of the labels can be made soft, the loss must change."""
    graph = Graph()
    logits = graph.op("MatMul", graph.variable("kernel"))
    dtype = {"ArgMax": "int64", "Round": "float32", "Greater": "bool"}[first]
    decided = graph.op(first, logits, passes="none", dtype=dtype)
    if first == "Greater":  # keras.metrics.binary_accuracy compares zeros and ones again
        decided = graph.op("Cast", decided, passes="dtype")
    wrong = graph.op("NotEqual", decided, passes="not_differentiable", dtype="bool")
    graph.target(graph.op("Mean", graph.op("Cast", wrong, passes="dtype")))
    graph.ask("kernel")

    assert graph.only_finding().cause == "nondiff_counting"


def test_a_mask_is_a_comparison_and_not_a_count() -> None:
    graph = Graph()
    mask = graph.op("Greater", graph.variable("threshold"), passes="not_differentiable", dtype="bool")
    kept = graph.op("Mul", graph.op("Cast", mask, passes="dtype"))
    graph.target(graph.op("Mean", kept))
    graph.ask("threshold")

    assert graph.only_finding().cause == "nondiff_comparison"


def test_comparing_with_uniform_noise_is_a_draw() -> None:
    finding = finding_at(
        "Less", dtype="bool", api="<", line="z = tf.cast(tf.random.uniform(tf.shape(p)) < p, tf.float32)"
    )

    assert finding.cause == "nondiff_sampling"
    assert "tf.math.log(p)" in finding.fix


@pytest.mark.parametrize(("branch", "place"), [("If", 0), ("StatelessIf", 0), ("While", 1)])
def test_a_comparison_that_only_chooses_is_a_predicate(branch: str, place: int) -> None:
    graph = Graph()
    inside = graph.op("Less", graph.variable("level"), passes="not_differentiable", dtype="bool")
    both = graph.op("LogicalAnd", inside, passes="not_differentiable", dtype="bool")
    graph.target(graph.op("Mean", graph.op(branch, both, passes="dtype", first=place)))
    graph.ask("level")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("predicate_only", inside)


def test_a_comparison_that_also_masks_is_no_mere_predicate() -> None:
    graph = Graph()
    inside = graph.op("Less", graph.variable("level"), passes="not_differentiable", dtype="bool")
    chosen = graph.op("If", inside, passes="dtype")
    masked = graph.op("Cast", inside, passes="dtype")
    graph.target(graph.op("Mean", graph.op("Mul", chosen, masked)))
    graph.ask("level")

    assert graph.only_finding().cause == "nondiff_comparison"


@pytest.mark.parametrize(
    ("kind", "line", "scores"),
    [
        ("ArgMax", "i = tf.argmax(logits)", "logits"),
        ("ArgMin", "i = tf.argmin(a + b)", "-(a + b)"),
        ("Multinomial", "i = tf.random.categorical(logits, 1)[0, 0]", "logits[0]"),
        ("Cast", "i = tf.cast(x, tf.int32)", "-tf.square(x - tf.range(len(branches), dtype=tf.float32)) / 0.1"),
    ],
)
def test_branches_that_an_index_selects_are_added_up_by_weights(kind: str, line: str, scores: str) -> None:
    api = line.partition(" = ")[2].partition("(")[0]
    graph = Graph()
    index = graph.op(kind, graph.variable("router"), passes="none", dtype="int32", api=api, line=line)
    graph.target(graph.op("Mean", graph.op("StatelessCase", index, passes="dtype")))
    graph.ask("router")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("predicate_only", index)
    assert f"the result of `{api}` (model.py:17) is only used to select a branch" in finding.message
    assert f"`weights = tf.nn.softmax({scores})`" in finding.fix


@pytest.mark.parametrize(("branch", "place", "old"), [("If", 0, "false_branch"), ("While", 1, "old")])
def test_a_condition_that_compares_nothing_has_no_soft_comparison(branch: str, place: int, old: str) -> None:
    graph = Graph()
    line = "broken = tf.math.is_nan(level)"
    broken = graph.op("IsNan", graph.variable("level"), passes="none", dtype="bool", api="tf.math.is_nan", line=line)
    graph.target(graph.op("Mean", graph.op(branch, broken, passes="dtype", first=place)))
    graph.ask("level")

    fix = graph.only_finding().fix

    assert fix.startswith("Compute a weight between 0 and 1")
    assert f"(1 - gate) * {old}`" in fix


def test_a_rounded_number_that_ends_a_loop_is_compared_softly() -> None:
    graph = Graph()
    steps = graph.variable("steps", shape=())
    rounded = graph.op("Round", steps, passes="none", api="tf.round", line="n = tf.round(steps)")
    more = graph.op("Greater", rounded, passes="none", dtype="bool", api=">", line="while n > t:")
    graph.target(graph.op("Mean", graph.op("While", more, passes="dtype", first=1)))
    graph.ask("steps")

    finding = graph.only_finding()

    assert "the result of `tf.round` (model.py:17) is only used to end a loop" in finding.message
    assert "`gate = tf.sigmoid((n - t) / 0.1)`" in finding.fix


def test_an_integer_variable_is_told_from_an_integer_on_the_way() -> None:
    graph = Graph()
    graph.target(graph.op("Mean", graph.op("Cast", graph.variable("count", dtype="int32"), passes="dtype")))
    graph.ask("count")

    finding = graph.only_finding()

    assert finding.cause == "integer_dtype"
    assert "dtype=tf.float32" in finding.fix


def test_an_op_without_an_entry_in_the_registry_is_an_error_that_names_it() -> None:
    graph = Graph()
    contrast = graph.op("AdjustContrastv2", graph.op("Conv2D", graph.variable("kernel")), passes="unregistered")
    graph.target(graph.op("Mean", contrast))
    graph.ask("kernel", outcome="error")

    [finding] = graph.diagnose(measured=False).findings

    assert finding.cause == "no_gradient_registered"
    assert "no entry for: AdjustContrastv2" in finding.message


def test_what_takes_the_place_of_an_op_without_an_entry_is_told_where_it_is_known() -> None:
    graph = Graph()
    largest = graph.op("SparseReduceMax", graph.variable("scores"), passes="unregistered", api="tf.sparse.reduce_max")
    graph.target(graph.op("Mean", largest))
    graph.ask("scores", outcome="error")

    [finding] = graph.diagnose(measured=False).findings

    assert "`tf.math.unsorted_segment_max(values, indices[:, 0], rows)`" in finding.fix


def test_an_input_without_gradient_beside_one_that_has_it() -> None:
    finding = finding_at("ImageProjectiveTransformV3", passes="none", first=1)

    assert finding.cause == "nondiff_op_input"


@pytest.mark.parametrize("made", [(None, "tf.nn.l2_normalize"), ("tf.nn.l2_normalize", None)])
def test_the_function_that_made_one_snapshot_is_not_said_of_another(made: tuple[str | None, ...]) -> None:
    graph = Graph()
    kernels = [graph.variable("hidden/kernel"), graph.variable("score/kernel")]
    fixed = [
        graph.op(SNAPSHOT, kernel, passes="not_differentiable", api=api, line="v = u @ w")
        for kernel, api in zip(kernels, made, strict=True)
    ]
    graph.target(graph.op("Mean", graph.op("Mul", *fixed)))
    graph.ask("hidden/kernel")
    graph.ask("score/kernel")
    finding = graph.only_finding()
    assert finding.cause == "python_snapshot"
    assert "l2_normalize" not in finding.message + finding.fix


def test_a_custom_gradient_of_none() -> None:
    finding = finding_at("IdentityN", passes="none", custom_gradient="CustomGradient-17", line="y = scaled(x)")

    assert finding.cause == "custom_gradient_wrong"
    assert "CustomGradient-17" not in finding.message
    assert "the custom gradient (model.py:17) returns `None` for it" in finding.message


def test_a_value_stored_and_read_back() -> None:
    graph = Graph()
    proposal = graph.op("Mul", graph.variable("proposal"))
    weight = graph.variable("weight", read=False)
    assert weight == -1
    stored = graph.op("AssignVariableOp", proposal, passes="not_differentiable", writes="weight")
    read = graph.op("ReadVariableOp", stored, passes="state")
    graph.target(graph.op("Mean", read))
    graph.ask("proposal")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("variable_assign", stored)


def test_of_two_cuts_the_value_is_told_and_the_condition_mentioned() -> None:
    """Making the condition soft would not help as long as the value is rounded."""
    graph = Graph()
    x = graph.variable("x")
    condition = graph.op(
        "Greater", x, passes="not_differentiable", dtype="bool", api="tf.greater", line="c = tf.greater(x, 0.)"
    )
    value = graph.op("Round", x, passes="none", api="tf.round", line="r = tf.round(x)")
    graph.target(graph.op("SelectV2", condition, value, passes=("dtype", "yes")))
    graph.ask("x")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_rounding", value)
    assert "On another path `tf.greater` (model.py:17) blocks the gradient too." in finding.message


def test_variables_behind_one_line_are_told_of_together() -> None:
    """A quantiser between the layers is called twice, from the same line."""
    graph = Graph()
    line = "return keras.ops.round(x * 4) / 4"
    first = graph.op("Round", graph.op("MatMul", graph.variable("a/kernel")), passes="none", line=line)
    second_input = graph.op("MatMul", first, graph.variable("b/kernel"))
    second = graph.op("Round", second_input, passes="none", line=line)
    graph.target(graph.op("Mean", second))
    graph.ask("a/kernel")
    graph.ask("b/kernel")

    finding = graph.only_finding()

    assert finding.variables == ("a/kernel", "b/kernel")
    assert finding.culprit == second


class TestHealthyTraps:
    """What looks like a cut and is none."""

    def test_a_straight_through_estimator(self) -> None:
        """`z + stop_gradient(round(z) - z)`: another way is open."""
        graph = Graph()
        z = graph.op("MatMul", graph.variable("kernel"))
        difference = graph.op("Sub", graph.op("Round", z, passes="none"), z)
        stopped = graph.op("StopGradient", difference, passes="not_differentiable")
        graph.target(graph.op("Mean", graph.op("AddV2", z, stopped)))
        graph.ask("kernel", FINE)

        assert graph.diagnose().findings == ()

    def test_the_results_of_a_custom_gradient_that_has_one_for_its_argument(self) -> None:
        """What cuts the variable off stands behind it."""
        graph = Graph()
        kernel = graph.variable("kernel")
        silu = graph.op(
            "IdentityN", graph.op("Mul", kernel), kernel, passes=("none", "yes"), custom_gradient="CustomGradient-1"
        )
        found = graph.op("ArgMax", silu, passes="none", dtype="int64")
        graph.target(graph.op("Mean", graph.op("Cast", found, passes="dtype")))
        graph.ask("kernel")
        finding = graph.only_finding()
        assert finding.cause == "nondiff_index"
        assert "custom gradient" not in finding.message

    def test_a_custom_gradient_that_passes(self) -> None:
        """Its first inputs, the results, get none; its arguments get the gradient."""
        graph = Graph()
        x = graph.op("MatMul", graph.variable("kernel"))
        hard = graph.op("Round", x, passes="none")
        graph.target(graph.op("IdentityN", hard, x, passes=("none", "yes"), custom_gradient="CustomGradient-1"))
        graph.ask("kernel", FINE)

        assert graph.diagnose().findings == ()

    def test_a_metric_beside_the_loss(self) -> None:
        graph = Graph()
        logits = graph.op("MatMul", graph.variable("kernel"))
        graph.op("ArgMax", logits, passes="dtype", dtype="int64")
        graph.target(graph.op("Mean", logits))
        graph.ask("kernel", FINE)

        assert graph.diagnose().findings == ()

    def test_integers_into_an_embedding(self) -> None:
        """Rows that are not in the batch are zeros among the others."""
        graph = Graph()
        graph.target(graph.op("Mean", graph.op("ResourceGather", graph.variable("embeddings"))))
        graph.ask("embeddings", sparse := (1.0, 0.5, 0.01, 0.98, 0.0, 0.0))

        assert sparse[3] > 0.9
        assert graph.diagnose().findings == ()

    def test_a_target_network_that_nobody_asked_for(self) -> None:
        graph = Graph()
        future = graph.op(
            "StopGradient", graph.op("MatMul", graph.variable("target/kernel")), passes="not_differentiable"
        )
        online = graph.op("MatMul", graph.variable("online/kernel"))
        graph.target(graph.op("Sub", online, future))
        graph.ask("online/kernel", FINE)

        assert graph.diagnose().findings == ()

    def test_a_target_network_read_outside_of_the_tape(self) -> None:
        """The graph has a differentiable way; no tape watched it, and nobody asked."""
        graph = Graph()
        future = graph.op("MatMul", graph.variable("target/kernel"))
        online = graph.op("MatMul", graph.variable("online/kernel"))
        graph.target(graph.op("Sub", online, future))
        graph.ask("online/kernel", FINE)

        assert graph.diagnose().findings == ()

    def test_a_frozen_layer_behind_a_cut(self) -> None:
        graph = Graph()
        features = graph.op("Round", graph.variable("base/kernel", trainable=False), passes="none")
        graph.target(graph.op("MatMul", features, graph.variable("head/kernel")))
        graph.ask("head/kernel", FINE)

        assert graph.diagnose().findings == ()


def two_losses(*, second: str, head: bool = False) -> Graph:
    """The first loss teaches the kernel; the second is asked for it too, behind an op of the type `second`."""
    graph = Graph()
    kernel = graph.op("MatMul", graph.variable("kernel"))
    graph.target(graph.op("Mean", kernel))
    passes: Any = "none" if second == "Round" else "yes"
    behind = graph.op(second, kernel, passes=passes, api="tf.round")
    graph.target(graph.op("Mean", graph.op("Mul", behind, graph.variable("head")) if head else behind))
    graph.ask("kernel", FINE)
    graph.ask("kernel", None if second == "Round" else FINE, target=1)
    if head:
        graph.ask("head", FINE, target=1)
    return graph


def test_a_loss_that_gives_nothing_to_any_it_is_asked_for_teaches_nobody() -> None:
    """Another loss teaches them, and decides what they are called."""
    graph = two_losses(second="Round")

    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.variables) == ("nondiff_rounding", "error", ("kernel",))
    assert [variable.status for variable in graph.diagnose().variables] == ["connected"]


@pytest.mark.parametrize(("second", "head"), [("Tanh", False), ("Round", True)])
def test_a_loss_that_teaches_any_is_meant_for_those(second: str, head: bool) -> None:
    findings = two_losses(second=second, head=head).diagnose().findings

    assert not [finding for finding in findings if finding.severity != "info"]


def test_positions_that_an_op_passes_on_next_to_its_values_need_no_fix() -> None:
    """The values get no gradient from `tf.sparse.maximum`; that their positions have none is no news."""
    graph = Graph()
    ordered = graph.op("SparseReorder", graph.variable("values"), api="tf.sparse.reorder")
    outputs = (Tensor((3, 2), "int64"), Tensor((3,), "float32"))
    graph.ops[ordered] = replace(graph.ops[ordered], outputs=outputs)
    edges = [Edge(ordered, output, output, "not_differentiable", False) for output in (0, 1)]
    compared = graph.op("SparseSparseMaximum", api="tf.sparse.maximum")
    graph.ops[compared] = replace(graph.ops[compared], inputs=tuple(edges))
    graph.target(graph.op("Mean", compared, shape=()))
    graph.ask("values")

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("nondiff_op", compared)
    assert "On another path" not in finding.message


def test_a_cut_whose_result_the_culprit_takes_is_told_as_another_one() -> None:
    graph = Graph()
    x = graph.variable("x")
    rounded = graph.op("Round", x, passes="none", api="tf.round")
    compared = graph.op("Less", x, rounded, passes="not_differentiable", dtype="bool", api="tf.less")
    graph.target(graph.op("Mean", graph.op("Cast", compared, passes="dtype"), shape=()))
    graph.ask("x")

    finding = graph.only_finding()

    assert finding.culprit == compared
    assert "On another path `tf.round` (in `model`) blocks the gradient too." in finding.message
