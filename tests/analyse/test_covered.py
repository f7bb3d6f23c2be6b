"""What a weight decay covers up, and variables that are none of the caller's business."""

from __future__ import annotations

from tests.analyse.builders import FINE, ZERO, Graph, sized, statuses


def decayed(*, stopped: bool, among_themselves: bool = False) -> Graph:
    """A kernel whose output is stopped or used, and whose square is added to the loss."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    if stopped:
        product = graph.op("StopGradient", product, passes="not_differentiable", api="tf.stop_gradient")
    data = graph.op("Mean", graph.op("MatMul", product, graph.variable("head")), shape=())
    penalties = [graph.op("L2Loss", graph.read("kernel"), shape=())]
    if among_themselves:
        penalties.append(graph.op("L2Loss", graph.read("head"), shape=()))
        penalties = [graph.op("AddN", *penalties, shape=())]
    graph.target(graph.op("AddV2", data, graph.op("Mul", *penalties, shape=()), shape=()))
    graph.ask("kernel", FINE)
    graph.ask("head", FINE)
    return graph


def test_a_stop_gradient_is_not_hidden_by_the_decay_of_what_it_stops() -> None:
    graph = decayed(stopped=True)

    diagnosis = graph.diagnose()

    assert statuses(diagnosis) == {"kernel": "connected", "head": "connected"}
    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity, finding.variables) == ("stop_gradient_misuse", "error", ("kernel",))
    assert "no gradient except from a penalty" in finding.message


def test_nor_where_the_decay_has_left_almost_nothing() -> None:
    """The gradient of a decay shrinks with the weights, and then looks like one that vanishes on a long path."""
    graph = decayed(stopped=True)
    graph.ask("kernel", sized(1e-12))

    finding = graph.only_finding()

    assert (finding.cause, finding.variables) == ("stop_gradient_misuse", ("kernel",))


def test_nor_where_the_decay_of_several_is_added_up_first() -> None:
    assert decayed(stopped=True, among_themselves=True).only_finding().cause == "stop_gradient_misuse"


def test_a_decayed_kernel_that_is_used_is_healthy() -> None:
    assert decayed(stopped=False, among_themselves=True).diagnose().findings == ()


def test_a_penalty_of_any_form_is_one_as_long_as_it_knows_no_data() -> None:
    """Orthogonality: the kernel times itself."""
    graph = Graph()
    data = graph.op("Mean", graph.op("MatMul", graph.variable("used")), shape=())
    kernel = graph.variable("kernel")
    penalty = graph.op("Sum", graph.op("Abs", graph.op("MatMul", kernel, graph.op("Transpose", kernel))), shape=())
    graph.target(graph.op("AddV2", data, penalty, shape=()))
    graph.ask("used", FINE)
    graph.ask("kernel", FINE)

    assert graph.only_finding().cause == "regularizer_only"


def test_a_number_added_to_what_is_divided_by_is_no_penalty() -> None:
    """The noise of a filter is added to a variance before anything is made of data, and beside that only compared."""
    graph = Graph()
    noise, data = graph.variable("noise", shape=()), graph.op("Mean", graph.op("MatMul", graph.variable("w")), shape=())
    variance = graph.op("AddV2", graph.op("Square", data, shape=()), graph.op("Exp", noise, shape=()), shape=())
    ratio = graph.op("RealDiv", data, variance, shape=())
    rejected = graph.op("Cast", graph.op("Less", ratio, passes="not_differentiable", dtype="bool", shape=()), shape=(),
                        passes="dtype")  # fmt: skip
    graph.target(graph.op("AddV2", ratio, graph.op("Mul", rejected, shape=(), constants={1: 4.0}), shape=()))
    graph.ask("noise", FINE)
    graph.ask("w", FINE)

    assert [finding.severity for finding in graph.diagnose().findings] == ["info"]


def stranger(*, whole: bool) -> Graph:
    graph = Graph()
    own, other = graph.variable("own"), graph.variable("other", tracked=False)
    graph.target(graph.op("Mean", graph.op("MatMul", own, other)))
    graph.ask("own", FINE)
    graph.ask("other", outcome="not_asked")
    graph.whole = whole
    return graph


def test_variables_that_the_caller_did_not_name_are_not_reported() -> None:
    diagnosis = stranger(whole=False).diagnose()

    assert diagnosis.findings == ()
    assert [variable.name for variable in diagnosis.variables if variable.listed] == ["own"]
    assert diagnosis.summary == "Healthy: the gradient reaches the trainable variable."


def test_variables_that_a_model_uses_and_does_not_know_are() -> None:
    diagnosis = stranger(whole=True).diagnose()

    assert [finding.cause for finding in diagnosis.findings] == ["untracked_variable"]
    assert [variable.name for variable in diagnosis.variables if variable.listed] == ["own", "other"]


def test_a_forward_pass_outside_of_a_tape_that_watches_by_itself() -> None:
    graph = Graph()
    graph.target(graph.op("MatMul", graph.variable("generator"), graph.variable("critic")), automatic=True)
    graph.ask("generator", watched=False)
    graph.ask("critic", FINE)

    assert graph.only_finding().cause == "tape_scope"


def test_a_tape_that_watches_only_what_it_is_told_to() -> None:
    graph = Graph()
    graph.target(graph.op("MatMul", graph.variable("generator"), graph.variable("critic")), automatic=False)
    graph.ask("generator", watched=False)
    graph.ask("critic", FINE)

    assert graph.only_finding().cause == "tape_not_watching"


def test_what_has_to_come_through_a_function_that_xla_refused_is_an_error() -> None:
    graph = Graph()
    inside = graph.op("While", graph.variable("recurrent"), compiled=True)
    graph.target(graph.op("MatMul", inside, graph.variable("head")))
    graph.ask("recurrent", FINE)
    graph.ask("head", FINE)
    graph.failure = "InvalidArgumentError: {{node a}} XLA compilation requires a fixed tensor list size"

    diagnosis = graph.diagnose(measured=False)

    assert statuses(diagnosis) == {"recurrent": "error", "head": "not_measured"}
    [finding] = [each for each in diagnosis.findings if each.severity == "error"]
    assert (finding.cause, finding.variables) == ("xla_boundary", ("recurrent",))
    assert "XLA compilation requires" in finding.message


def test_what_xla_minds_in_a_loop_is_shown_at_the_loop() -> None:
    """`tf.linalg.expm` has one inside, behind some slicing."""
    graph = Graph()
    sliced = graph.op("StridedSlice", graph.variable("rates"), compiled=True)
    loop = graph.op("StatelessWhile", sliced, compiled=True, api="tf.linalg.expm")
    graph.target(graph.op("Mean", loop))
    graph.ask("rates", FINE)
    graph.failure = "InvalidArgumentError: XLA compilation requires a fixed tensor list size"

    assert graph.diagnose(measured=False).findings[0].culprit == loop

    graph.failure = "InvalidArgumentError: XLA compilation requires that operator arguments be constants"

    assert graph.diagnose(measured=False).findings[0].culprit == sliced


def test_a_cut_that_a_stop_gradient_follows_is_not_the_one_to_mend_first() -> None:
    """Vector quantisation with both sides stopped: softening the search alone would not help."""
    graph = Graph()
    nearest = graph.op("ArgMin", graph.variable("book"), passes="none", dtype="int64", api="tf.argmin")
    rows = graph.op("GatherV2", graph.read("book"), nearest, passes=("yes", "dtype"))
    stop = graph.op("StopGradient", rows, passes="not_differentiable", api="tf.stop_gradient")
    graph.target(graph.op("Mean", graph.op("Sub", stop, graph.variable("encoder"))))
    graph.ask("book")
    graph.ask("encoder", FINE)

    finding = graph.only_finding()

    assert (finding.cause, finding.culprit) == ("stop_gradient_misuse", stop)


def silenced(*, learns: bool = False, biased: bool = False) -> Graph:
    """A kernel behind which a ReLU lets nothing through, and whose square is added to the loss."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    if biased:
        product = graph.op("BiasAdd", product, graph.variable("bias"))
    hidden = graph.op("Relu", product, api="tf.nn.relu")
    out = graph.op("MatMul", hidden, graph.variable("head"))
    penalty = graph.op("L2Loss", graph.read("kernel"), shape=())
    graph.target(graph.op("AddV2", graph.op("Mean", out, shape=()), penalty, shape=()))
    for op in range(product + 1):
        if graph.ops[op].reads is None:
            graph.gradient(op, FINE if learns else ZERO)
    graph.gradient(hidden, FINE)
    graph.gradient(out, FINE)
    graph.gradient(penalty, FINE)
    graph.ask("kernel", FINE)
    if biased:
        graph.ask("bias", ZERO)
    graph.ask("head", FINE)
    return graph


def test_a_dead_relu_is_not_hidden_by_the_decay_of_the_kernel_in_front_of_it() -> None:
    diagnosis = silenced().diagnose()

    assert statuses(diagnosis)["kernel"] == "connected"
    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity, finding.variables) == ("dead_relu", "error", ("kernel",))
    assert finding.message.startswith(
        "`kernel` gets no gradient except from a penalty: the output of `tf.nn.relu` (in `model`) is zero"
    )


def test_and_told_together_with_what_gets_exactly_zero() -> None:
    finding = silenced(biased=True).only_finding()

    assert (finding.cause, finding.variables) == ("dead_relu", ("kernel", "bias"))
    assert "get no gradient, or only that of a penalty: " in finding.message


def test_a_penalty_beside_a_gradient_is_none_of_our_business() -> None:
    assert silenced(learns=True).diagnose().findings == ()
