"""A value that is stored and read back: the remedy speaks of what the user stores, and where."""

from __future__ import annotations

import pytest

from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, Graph


def fix_of(line: str, name: str = "AssignVariableOp") -> str:
    graph = Graph()
    store = graph.op(
        "AssignVariableOp", graph.variable("w"), passes="not_differentiable", name=name, api="assign", line=line
    )
    graph.target(graph.op("Mean", graph.op("ReadVariableOp", store, passes="state")))
    graph.ask("w")
    finding = graph.only_finding()
    assert finding.cause == "variable_assign"
    return finding.fix


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("self.state.assign(0.5 * x)", "`value = 0.5 * x`, instead of `self.state`, and store it afterwards"),
        ("total.assign_add(a - b)", "start with `value = tf.identity(total)`, set `value = value + (a - b)` each time"),
        ("table[t, :].assign(row + 1)", "`parts.append(row + 1)` for each of them"),
        ("table[t].assign(row)", "then use `tf.stack(parts)` instead of `table`"),
        ("cells[i, j].assign(a / b)", "then use `tf.reshape(tf.stack(parts), cells.shape)` instead of `cells`"),
        ("metric.update_state(y, model(x))", "Compute the loss from the tensors themselves"),
        ("tf.compat.v1.assign(state, x)", "`y = f(value)`, then `state.assign(value)`"),
        ("step(x)", "`y = f(value)`, then `state.assign(value)`"),
    ],
)
def test_the_tensor_takes_the_place_of_what_it_was_stored_in(line: str, told: str) -> None:
    assert told in fix_of(line)


def test_in_a_loop_the_tensor_is_handed_on() -> None:
    fix = fix_of("h.assign(0.9 * h + tf.tanh(th))", "run/while/AssignVariableOp")

    assert (
        "set `value = 0.9 * value + tf.tanh(th)` in each iteration, and store it after the loop, `h.assign(value)`"
        in fix
    )


def test_a_metric_that_is_called_is_no_loss() -> None:
    """Its total is stored, read back and divided by a count that may be zero."""
    graph = Graph()
    store = graph.op("AssignVariableOp", graph.variable("w"), passes="not_differentiable", line="loss = metric(y, p)")
    graph.target(graph.op("DivNoNan", graph.op("ReadVariableOp", store, passes="state")))
    graph.ask("w")

    assert "A metric does not propagate gradients" in graph.only_finding().fix


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("rows.write(t, h)", "Keep the array that it returns: `rows = rows.write(t, h)`."),
        ("rows = rows.write(t, h)", "Use the output of `cell`"),
    ],
)
def test_an_array_that_is_written_to_is_the_one_that_write_hands_back(line: str, told: str) -> None:
    graph = Graph()
    graph.op("TensorListSetItem", graph.variable("cell/kernel"), dtype="variant", line=line)
    graph.target(graph.op("Mean", graph.variable("head/kernel")))
    graph.ask("cell/kernel")
    graph.ask("head/kernel", FINE)

    finding = graph.only_finding()

    assert (finding.cause, told in finding.fix) == ("output_not_used", True)


def test_a_tensor_that_is_made_a_tensor_again_is_left_as_it_is() -> None:
    graph = Graph()
    line = "state = tf.constant(np.array(state))"
    left = graph.op("Python", graph.variable("cell/kernel"), passes="not_differentiable", api="np.array", line=line)
    graph.target(graph.op("Mean", left))
    graph.ask("cell/kernel")

    finding = graph.only_finding()

    assert (finding.cause, finding.fix) == ("python_escape", "Remove this line: `state` is already a tensor.")


def test_a_result_that_is_left_alone_is_called_by_its_name() -> None:
    graph = Graph()
    graph.layers = [Layer("model/pos", "pos", "Embedding"), Layer("model/enc", "enc", "Encoder")]
    rows = graph.op("GatherV2", graph.variable("enc/pos/embeddings"), name="model/enc/pos/take")
    graph.op("AddV2", rows, name="model/enc/add", api="+", line="x2 = x + self.pos(places)")
    graph.target(graph.op("Mean", graph.variable("head/kernel")))
    graph.ask("enc/pos/embeddings")
    graph.ask("head/kernel", FINE)

    assert graph.only_finding().fix.startswith("Use `x2` (model.py:17) on the path to the loss")


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("line", ["i = np.argmax(w)", "i = order.searchsorted(w)"])
def test_of_two_values_that_leave_tensorflow_the_one_that_is_no_index_is_told(line: str, place: int) -> None:
    graph = Graph()
    kernel = graph.variable("w")
    lines = ["v = float(w[0])"]
    lines.insert(place, line)
    first, second = (graph.op("Python", kernel, passes="not_differentiable", api="f", line=each) for each in lines)
    graph.target(graph.op("Mean", graph.op("AddV2", first, graph.op("Square", second))))
    graph.ask("w")

    finding = graph.only_finding()

    assert finding.cause == "python_escape"
    assert finding.source is not None
    assert finding.source.code == "v = float(w[0])"


def test_a_value_that_leaves_tensorflow_without_a_known_line_is_told_before_an_index() -> None:
    graph = Graph()
    kernel = graph.variable("w")
    index = graph.op("Python", kernel, passes="not_differentiable", api="np.argmax", line="i = np.argmax(w)")
    value = graph.op("Python", kernel, passes="not_differentiable", api="float")
    graph.target(graph.op("Mean", graph.op("AddV2", index, graph.op("Square", value))))
    graph.ask("w")

    assert "leaves TensorFlow at `float`" in graph.only_finding().message


def test_of_two_positions_the_nearest_to_the_loss_is_told_whatever_finds_it() -> None:
    """Which of them is an index matters for Python alone."""
    graph = Graph()
    kernel, line = graph.variable("w"), "i = tf.argmax(w)"
    index = graph.op("ArgMax", kernel, passes="not_differentiable", dtype="int64", api="tf.argmax", line=line)
    lowest = graph.op("ArgMin", kernel, passes="not_differentiable", dtype="int64", api="tf.argmin", line="j = low(w)")
    near = graph.op("Cast", index, passes="dtype")
    graph.target(graph.op("Mean", graph.op("AddV2", near, graph.op("Square", graph.op("Cast", lowest)))))
    graph.ask("w")

    assert graph.only_finding().culprit == index
