"""`explain` answers for a loss in a graph of TensorFlow 1, and leaves graph, session and random numbers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import SetupError
from tb_gradflow.serve.reports.report import Report

v1 = tf.compat.v1

Program = Callable[[], tuple[Any, list[Any]]]

tf.RegisterGradient("GradflowTestFloor")(lambda op, upstream: [upstream])
tf.RegisterGradient("GradflowTestSquare")(lambda op, upstream: upstream * op.inputs[0])


@pytest.fixture(params=["old", "new"])
def control_flow(request: pytest.FixtureRequest) -> Iterator[None]:
    """Branches and loops as programs of both ages have them."""
    enabled = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if request.param == "new" else v1.disable_control_flow_v2)()
    yield
    (v1.enable_control_flow_v2 if enabled else v1.disable_control_flow_v2)()


@pytest.fixture(params=["reference", "resource"])
def graph(request: pytest.FixtureRequest) -> Iterator[tf.Graph]:
    """A graph whose variables are of one of the two kinds."""
    with tf.Graph().as_default() as graph, v1.variable_scope("", use_resource=request.param == "resource"):
        yield graph


def variable(name: str, value: Any, **options: Any) -> Any:
    return v1.get_variable(name, initializer=np.array(value, np.float32), **options)


def explained(loss: Any, variables: list[Any], **options: Any) -> Report:
    """In a session in which all variables are initialised."""
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return tb_gradflow.explain(loss, variables=variables, **options)


def statuses(report: Report) -> list[str]:
    return [each.status for each in report.variables.values()]


def causes(report: Report) -> list[str]:
    return [finding.cause for finding in report.findings]


def step_filter() -> tuple[Any, list[Any]]:
    images = v1.placeholder_with_default(np.ones((2, 8, 3), np.float32), [2, 8, 3])
    with v1.variable_scope("filter"):
        width = v1.clip_by_value(variable("width", [5.0, 5.0, 5.0]), 0, 8)
    mask = tf.transpose(tf.sequence_mask(width, 8, dtype=tf.float32))
    head = variable("head", [[1.0], [2.0], [3.0]])
    v1.summary.histogram("width", width)
    return tf.reduce_mean(tf.tensordot(images * mask[None], head, 1)), v1.trainable_variables()


def gathered() -> tuple[Any, list[Any]]:
    places, table = variable("places", [0.0, 2.0]), variable("table", [1.0, 2.0, 3.0])
    return tf.reduce_sum(tf.gather(table, tf.cast(places, tf.int32)) ** 2), [places, table]


def detour() -> tuple[Any, list[Any]]:
    x = variable("x", [1.2, 2.7])
    return tf.reduce_sum(tf.subtract(x, tf.subtract(x, tf.floor(x))) ** 2), [x]


def rounded_up() -> tuple[Any, list[Any]]:
    x = variable("x", [1.2, 2.7])
    return tf.reduce_sum(tf.math.ceil(x)), [x]


def overridden_floor() -> tuple[Any, list[Any]]:
    x = variable("x", [1.2, 2.7])
    with v1.get_default_graph().gradient_override_map({"Floor": "GradflowTestFloor"}):
        return tf.reduce_sum(tf.floor(x) ** 2), [x]


def overridden_by_identity() -> tuple[Any, list[Any]]:
    x = variable("x", [1.2, 2.7])
    with v1.get_default_graph().gradient_override_map({"Floor": "Identity"}):
        return tf.reduce_sum(tf.floor(x) ** 2), [x]


def overridden_wrongly() -> tuple[Any, list[Any]]:
    x = variable("x", [1.2, 2.7])
    with v1.get_default_graph().gradient_override_map({"Square": "GradflowTestSquare"}):
        return tf.reduce_sum(tf.square(x)), [x]


def straight_through() -> tuple[Any, list[Any]]:
    @tf.custom_gradient
    def rounded(x: Any) -> Any:
        return tf.round(x), lambda upstream: upstream

    x = variable("x", [1.2, 2.7])
    return tf.reduce_sum(rounded(x) ** 2), [x]


def half_a_square() -> tuple[Any, list[Any]]:
    @tf.custom_gradient
    def half(x: Any) -> Any:
        return x * x, lambda upstream: upstream * x

    x = variable("x", [1.2, 2.7])
    return tf.reduce_sum(half(x)), [x]


def hidden_by_where() -> tuple[Any, list[Any]]:
    x = variable("x", [0.0, 1.0])
    return tf.reduce_sum(tf.where(x > 0.5, 1 / x, tf.zeros_like(x))), [x]


def both_branches() -> tuple[Any, list[Any]]:
    a, b = variable("a", 2.0), variable("b", 3.0)
    return tf.cond(v1.placeholder_with_default(True, []), lambda: a * b, lambda: a + b), [a, b]


def branch_left_out() -> tuple[Any, list[Any]]:
    a, b = variable("a", 2.0), variable("b", 3.0)
    return tf.cond(v1.placeholder_with_default(True, []), lambda: a * a, lambda: b * b), [a, b]


def bump() -> tuple[Any, list[Any]]:
    x = tf.constant(np.linspace(-0.9, 0.9, 7), tf.float32)
    level, scale = variable("level", 0.5), variable("scale", 1.0)
    inside = tf.less(tf.reduce_mean(x), level)
    out = tf.cond(inside, lambda: tf.exp(-tf.pow(1 - tf.pow(x, 2), -1)), lambda: 0 * x)
    return tf.reduce_sum(out * scale), [level, scale]


def branches_of_constants() -> tuple[Any, list[Any]]:
    level, scale = variable("level", 0.5), variable("scale", 1.0)
    return tf.cond(level > 0, lambda: tf.constant(1.0), lambda: tf.constant(2.0)) * scale, [level, scale]


def loop() -> tuple[Any, list[Any]]:
    end, factor = variable("end", 3.5), variable("factor", 1.1)
    _, power = tf.while_loop(lambda i, y: i < end, lambda i, y: (i + 1, y * factor), [0.0, 1.0])
    return power, [end, factor]


def arrays_in_loops() -> tuple[Any, list[Any]]:
    w, start = variable("w", [0.3, 0.7, 1.1]), variable("start", 0.5)
    mapped = tf.map_fn(tf.tanh, w)
    return tf.reduce_sum(tf.scan(lambda state, each: state * each + each, mapped, initializer=start)), [w, start]


def stored_slice_by_slice() -> tuple[Any, list[Any]]:
    box = variable("box", [[4.0, 5.0], [5.0, 6.0]])
    result = variable("result", [0.0, 0.0], trainable=False)
    stores = [result[place].assign(tf.reduce_prod(box[:, place])) for place in range(2)]
    with tf.control_dependencies(stores):
        return tf.reduce_sum(result.read_value()), [box]


def stored() -> tuple[Any, list[Any]]:
    w, kept = variable("w", 2.0), variable("kept", 0.0, trainable=False)
    with tf.control_dependencies([kept.assign(w * w)]):
        return kept.read_value() * 3.0, [w]


def partly_stopped() -> tuple[Any, list[Any]]:
    w, mask = variable("w", [0.0, 0.0, 1.0]), tf.constant([0.0, 1.0, 1.0])
    return tf.reduce_sum(tf.square(mask * w + tf.stop_gradient((1 - mask) * w) - 2.0)), [w]


def trained_beside() -> tuple[Any, list[Any]]:
    w, idle = variable("w", 2.0), variable("idle", 1.0)
    loss = w * w + 0.0
    v1.train.AdamOptimizer().minimize(loss)
    v1.train.Saver()
    return loss, [w, idle]


def refused() -> tuple[Any, list[Any]]:
    w, scale = variable("w", np.ones((1, 2, 2, 3))), variable("scale", 1.0)
    return tf.reduce_sum(tf.image.adjust_hue(w, 0.1)) * scale, [w, scale]


@pytest.mark.parametrize(
    ("program", "status", "cause"),
    [
        (step_filter, ["disconnected", "connected"], ["nondiff_comparison"]),
        (gathered, ["disconnected", "connected"], ["nondiff_index"]),
        (detour, ["zero"], ["nondiff_rounding"]),
        (rounded_up, ["disconnected"], ["nondiff_rounding"]),
        (overridden_floor, ["connected"], []),
        (overridden_by_identity, ["connected"], []),
        (overridden_wrongly, ["connected"], ["custom_gradient_wrong"]),
        (straight_through, ["connected"], []),
        (half_a_square, ["connected"], ["custom_gradient_wrong"]),
        (hidden_by_where, ["nan"], ["where_inactive_branch"]),
        (stored_slice_by_slice, ["disconnected"], ["variable_assign"]),
        (stored, ["disconnected"], ["variable_assign"]),
        (partly_stopped, ["connected"], ["mask_multiplies_to_zero"]),
        (trained_beside, ["connected", "unused"], ["output_not_used"]),
        (refused, ["error", "connected"], ["no_gradient_registered"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.usefixtures("graph")
def test_a_question_is_answered(program: Program, status: list[str], cause: list[str]) -> None:
    report = explained(*program())

    assert statuses(report) == status, str(report)
    assert causes(report) == cause, str(report)


@pytest.mark.parametrize(
    ("program", "status", "cause"),
    [
        (both_branches, ["connected", "connected"], []),
        (branch_left_out, ["connected", "zero"], ["branch_not_taken"]),
        (bump, ["disconnected", "connected"], ["predicate_only"]),
        (branches_of_constants, ["disconnected", "connected"], ["predicate_only"]),
        (loop, ["disconnected", "connected"], ["predicate_only"]),
        (arrays_in_loops, ["connected", "connected"], []),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.usefixtures("graph", "control_flow")
def test_branches_and_loops_of_both_ages(program: Program, status: list[str], cause: list[str]) -> None:
    report = explained(*program())

    assert statuses(report) == status, str(report)
    assert causes(report) == cause, str(report)


@pytest.mark.usefixtures("control_flow")
def test_the_numbers_are_those_of_tf_gradients(graph: tf.Graph) -> None:
    loss, variables = loop()
    table = variable("table", np.arange(12).reshape(4, 3))
    x = v1.placeholder(tf.float32, [3])
    loss = loss * tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 1, 2]) * x)
    expected = [tf.convert_to_tensor(each) for each in v1.gradients(loss, [variables[1], table])]
    feed = {x: [1.0, -2.0, 0.5]}

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        before = graph.as_graph_def()
        report = tb_gradflow.explain(loss, variables=[*variables, table], feed_dict=feed)
        wanted = session.run(expected, feed)

    assert graph.as_graph_def() == before
    for name, gradient in zip(["factor", "table"], wanted, strict=True):
        statistics = report.variables[name].gradient
        assert statistics is not None
        assert statistics.norm == pytest.approx(float(np.linalg.norm(gradient)), rel=1e-5)
        assert statistics.max_abs == pytest.approx(float(np.abs(gradient).max()), rel=1e-5)
        assert statistics.zero_fraction == pytest.approx(float(np.mean(gradient == 0)))


@pytest.mark.parametrize("look", [False, True])
def test_random_numbers_come_as_if_nobody_had_looked(graph: tf.Graph, look: bool) -> None:
    v1.set_random_seed(5)
    w = variable("w", [1.0, 2.0])
    loss = tf.reduce_sum(w * tf.random.normal([2]))

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        first = session.run(loss)
        if look:
            assert tb_gradflow.explain(loss, variables=[w]).healthy
        later = tf.random.uniform([])
        drawn = [first, session.run(loss), session.run(later)]

    # The seed of an op made later depends on how many there are in the graph.
    assert drawn == pytest.approx(DRAWN.setdefault(w.dtype.name, drawn))


DRAWN: dict[str, list[float]] = {}


def test_a_finished_graph_is_looked_at_as_it_is(graph: tf.Graph) -> None:
    loss, variables = partly_stopped()
    initialise = v1.global_variables_initializer()
    graph.finalize()

    with v1.Session() as session:
        session.run(initialise)
        report = tb_gradflow.explain(loss, variables=variables)

    assert report.healthy


def test_the_graphs_trainable_variables_are_asked_for_by_default(graph: tf.Graph) -> None:
    loss, _ = stored()

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        report = tb_gradflow.explain(loss)

    assert list(report.variables) == ["w"]


@pytest.mark.usefixtures("graph")
def test_a_tensor_that_the_loss_was_not_made_of_is_told_from_a_variable() -> None:
    a = variable("a", [1.0, 2.0])
    loss = tf.reduce_sum(tf.sin(a))
    moved = a + 1e-3
    inner = tf.exp(a, name="inner")
    other = tf.reduce_sum(inner)

    report = explained(loss, [a, moved])

    assert statuses(report) == ["connected", "unused"]
    [finding] = report.findings
    assert finding.variables == (moved.op.name,)
    assert f"the loss was not computed from `{moved.op.name}`" in finding.message
    assert statuses(explained(other, [inner])) == ["connected"]


@pytest.mark.usefixtures("graph")
def test_without_a_session_the_structure_is_told_and_the_rest_said_to_be_unknown() -> None:
    report = tb_gradflow.explain(*(rounded_up()[0],), variables=v1.trainable_variables())

    assert statuses(report) == ["disconnected"]
    assert causes(report) == ["nondiff_rounding"]
    assert "This graph has no default session" in " ".join(str(report).split())


@pytest.mark.usefixtures("graph")
def test_what_cannot_be_run_is_said() -> None:
    w = variable("w", [1.0, 2.0])
    x = v1.placeholder(tf.float32, [2], name="x")
    rows = v1.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(np.ones(2, np.float32)).repeat()).get_next()

    def told(loss: Any, *, initialise: bool = True, **options: Any) -> str:
        with v1.Session() as session:
            if initialise:
                session.run(v1.global_variables_initializer())
            report = tb_gradflow.explain(loss, variables=[w], **options)
            assert report.variables["w"].gradient is None
            assert report.variables["w"].status == "not_measured"
            assert not report.healthy
        return " ".join(str(report).split())

    assert "`x` has to be fed" in told(tf.reduce_sum(w * tf.sqrt(x - 9.0)))
    assert "not initialized" in told(tf.reduce_sum(w * w), initialise=False)
    assert "reading would change its state" in told(tf.reduce_sum(w * rows))
    assert "could not be run" in told(tf.reduce_sum(w * tf.boolean_mask(x, x > 1.5)), feed_dict={x: [0.0, 0.0]})
    assert statuses(explained(tf.reduce_sum(w * rows), [w], feed_dict={rows: [1.0, 2.0]})) == ["connected"]


@pytest.mark.usefixtures("graph")
def test_wrong_arguments_are_told_at_once() -> None:
    w = variable("w", [1.0, 2.0])
    loss = tf.reduce_sum(w)
    with tf.Graph().as_default():
        stranger = v1.get_variable("stranger", [])

    with pytest.raises(SetupError, match="belongs to a different graph"):
        tb_gradflow.explain(loss, variables=[stranger])
    with pytest.raises(SetupError, match="expected variables or tensors"):
        tb_gradflow.explain(loss, variables=["w"])
    with pytest.raises(SetupError, match="only floating tensors have gradients"):
        tb_gradflow.explain(tf.cast(loss, tf.int32), variables=[w])
    with pytest.raises(SetupError, match="call `explain` outside of it"):
        tf.function(lambda x: tb_gradflow.explain(x, variables=[]), autograph=False)(tf.constant(1.0))
    x = v1.placeholder(tf.float32, [2])
    with pytest.raises(SetupError, match=r"has shape \(2,\), got \(3,\)"):
        tb_gradflow.explain(loss, variables=[w], feed_dict={x: [1.0, 2.0, 3.0]})
    with pytest.raises(SetupError, match="is not a tensor of the loss's graph"):
        tb_gradflow.explain(loss, variables=[w], feed_dict={"nothing:0": 1.0})


@pytest.mark.usefixtures("graph")
def test_a_gradient_of_the_users_own_is_compared() -> None:
    report = explained(*overridden_wrongly())

    [finding] = report.findings
    assert "which replaces the gradient of `tf.square`" in finding.message
    assert "0.5 times the derivative" in finding.message


def test_the_terms_of_a_sum_have_the_gradients_of_plain_tensorflow() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        encoder, decoder = (
            v1.get_variable(name, initializer=tf.constant(np.random.default_rng(3).normal(size=shape).astype("f")))
            for name, shape in (("encoder", (4, 2)), ("decoder", (2, 4)))
        )
        code = tf.tanh(tf.matmul(x, encoder))
        reconstruction = tf.reduce_mean(tf.square(tf.matmul(code, decoder) - x))
        kl = tf.reduce_mean(tf.square(code))
        penalty = tf.nn.l2_loss(encoder)
        loss = reconstruction + 0.5 * kl - 0.01 * penalty
        session.run(v1.global_variables_initializer())
        fed = {x: np.random.default_rng(4).normal(size=(5, 4)).astype("f")}
        before = len(v1.get_default_graph().get_operations())

        report = tb_gradflow.explain(loss, variables=[encoder, decoder], feed_dict=fed)

        assert len(v1.get_default_graph().get_operations()) == before
        parts = {"reconstruction": reconstruction, "kl": 0.5 * kl, "penalty": -0.01 * penalty}
        plain = {name: session.run([part, *v1.gradients(part, [encoder])], fed) for name, part in parts.items()}
        terms = {term.name: term for term in report.terms}
        assert terms.keys() == parts.keys()
        for name, (value, gradient) in plain.items():
            assert terms[name].value == pytest.approx(float(value), rel=1e-5)
            own = {each.variable: each for each in terms[name].variables}
            assert own.keys() == ({"encoder", "decoder"} if name == "reconstruction" else {"encoder"})
            assert own["encoder"].norm == pytest.approx(float(np.linalg.norm(gradient)), rel=1e-5)
            for angle in own["encoder"].cosine:
                other = plain[angle.term][1]
                length = np.linalg.norm(gradient) * np.linalg.norm(other)
                assert angle.cosine == pytest.approx(float(np.sum(gradient * other) / length), abs=1e-5)
        total = session.run(v1.gradients(loss, [encoder]), fed)[0]
        assert np.sum([gradient for _, gradient in plain.values()], axis=0) == pytest.approx(total, abs=1e-6)
        assert not tb_gradflow.explain(loss, variables=[encoder], feed_dict=fed, terms=False).terms
        assert not tb_gradflow.explain(loss, variables=[encoder]).terms  # nothing follows from invented numbers
