"""The recorded structure: what TensorFlow really built, with the user's lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.schema import Op, Trace
from tests.trace import models
from tests.trace.recording import data, record

layers = keras.layers


class StepFilter(keras.layers.Layer):
    def build(self, shape: Any) -> None:
        self.threshold = self.add_weight(name="threshold", shape=(), initializer=keras.initializers.Constant(3.0))

    def call(self, x: Any) -> Any:
        mask = tf.sequence_mask(self.threshold, 6, dtype=tf.float32)
        return x * mask


class Calls(keras.layers.Layer):
    """Runs `body(self, x)`, with one weight `w`."""

    def __init__(self, body: Any, **options: Any) -> None:
        super().__init__(**options)
        self.body = body

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(), initializer=keras.initializers.Constant(0.5))

    def call(self, x: Any) -> Any:
        return self.body(self.w.value, x)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


def around(layer: Any) -> Any:
    """A model with `layer` between two dense ones."""

    def build() -> Any:
        x = keras.Input((6,))
        model = keras.Model(x, layers.Dense(2, name="out")(layer()(layers.Dense(6, name="pre")(x))), name="model")
        model.compile("sgd", "mse")
        return model

    return build


def structure(directory: Path, body: Any) -> Trace:
    return record(directory, around(lambda: Calls(body, name="mine")), *data()).trace


def passes_into(trace: Trace, op: Op) -> list[str]:
    return [edge.passes for edge in op.inputs]


def the(trace: Trace, type: str) -> Op:
    [found] = [op for op in trace.ops if op.type == type]
    return found


def influenced(trace: Trace, variable: str) -> set[str]:
    """Types of the ops downstream of a variable."""
    names = [v.name for v in trace.variables]
    seen = {i for i, op in enumerate(trace.ops) if op.reads is not None and names[op.reads] == variable}
    while True:
        more = {i for i, op in enumerate(trace.ops) if i not in seen and any(e.op in seen for e in op.inputs)}
        if not more:
            return {trace.ops[i].type for i in seen}
        seen |= more


def test_a_comparison_blocks_and_is_named_by_the_function_the_user_called(tmp_path: Path) -> None:
    recorded = record(tmp_path, around(lambda: StepFilter(name="filter")), *data())

    less = recorded.op("Less")
    assert "yes" not in passes_into(recorded.trace, less)
    assert less.api == "tf.sequence_mask"
    assert less.source is not None
    source = recorded.trace.sources[less.source]
    assert source.code == "mask = tf.sequence_mask(self.threshold, 6, dtype=tf.float32)"
    assert (Path(source.file).name, source.function) == ("test_structure.py", "call")
    assert recorded.outcome("filter/threshold") == "none"
    assert recorded.outcome("pre/kernel") == "value"


@pytest.mark.parametrize(
    ("type", "passes", "body"),
    [
        ("Round", "none", lambda w, x: tf.round(x * w)),
        ("Floor", "none", lambda w, x: tf.floor(x * w)),
        ("StopGradient", "not_differentiable", lambda w, x: tf.stop_gradient(x * w)),
        ("Sign", "yes", lambda w, x: tf.sign(x * w)),
        (
            "PyFunc",
            "not_differentiable",
            lambda w, x: x + tf.ensure_shape(tf.numpy_function(np.sin, [w], tf.float32), []),
        ),
    ],
)
def test_what_an_op_passes_is_what_tensorflow_says(type: str, passes: str, body: Any, tmp_path: Path) -> None:
    trace = structure(tmp_path, body)

    assert set(passes_into(trace, the(trace, type))) == {passes}


def test_integer_gather_indices_pass_nothing_and_values_do(tmp_path: Path) -> None:
    def body(w: Any, x: Any) -> Any:
        return x + tf.gather(x * w, tf.argmax(x * w, axis=1), axis=1, batch_dims=1)[:, None]

    trace = structure(tmp_path, body)

    gather = the(trace, "GatherV2")
    assert [edge.passes for edge in gather.inputs] == ["yes", "dtype"]
    assert passes_into(trace, the(trace, "ArgMax")) == ["none"]


def test_a_straight_through_custom_gradient_passes(tmp_path: Path) -> None:
    @tf.custom_gradient
    def straight_through(x: Any) -> Any:
        return tf.round(x), lambda upstream: upstream

    trace = structure(tmp_path, lambda w, x: straight_through(x * w))

    identity = the(trace, "IdentityN")
    assert identity.custom_gradient is not None
    assert sorted(passes_into(trace, identity)) == ["none", "yes"]


def test_a_custom_gradient_with_a_tape_of_its_own_passes(tmp_path: Path) -> None:
    @tf.custom_gradient
    def recomputed(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                again = tf.tanh(x)
            return tape.gradient(again, x, output_gradients=upstream)

        return tf.tanh(x), grad

    trace = structure(tmp_path, lambda w, x: recomputed(w * x))
    [op] = [op for op in trace.ops if op.custom_gradient is not None]
    assert [edge.passes for edge in op.inputs] == ["none", "yes"]


def test_the_two_outputs_of_a_nested_function_are_not_confused(tmp_path: Path) -> None:
    @tf.function
    def pair(w: Any, x: Any) -> Any:
        return x * 2.0, tf.exp(w)

    def body(w: Any, x: Any) -> Any:
        used, _ = pair(w, x)
        return used

    trace = structure(tmp_path, body)

    assert "PartitionedCall" not in {op.type for op in trace.ops}
    assert "MatMul" not in influenced(trace, "mine/w")
    assert "Exp" in influenced(trace, "mine/w"), "an unused way is recorded up to where it ends"


def test_a_condition_blocks_at_its_predicate_and_passes_from_its_branches(tmp_path: Path) -> None:
    trace = structure(tmp_path, lambda w, x: tf.cond(w > 0.0, lambda: x * 2.0, lambda: x * 3.0))

    [condition] = [op for op in trace.ops if op.type in ("If", "StatelessIf")]
    assert {(edge.input, edge.passes) for edge in condition.inputs} == {
        (0, "not_differentiable"),
        (1, "yes"),
        (2, "yes"),
    }
    names = [op.name for op in trace.ops]
    assert len(names) == len(set(names))


def test_a_loop_carries_its_variables_and_blocks_at_its_condition(tmp_path: Path) -> None:
    def body(w: Any, x: Any) -> Any:
        _, result = tf.while_loop(
            lambda i, value: (i < 3) & (tf.reduce_sum(value) < 1e3), lambda i, value: (i + 1, value * w + 1.0), [0, x]
        )
        return result

    trace = structure(tmp_path, body)

    loop = [op for op in trace.ops if op.type in ("While", "StatelessWhile")]
    carried = [edge for op in loop for edge in op.inputs if edge.carried]
    assert {edge.passes for edge in carried} == {"yes", "not_differentiable"}
    assert influenced(trace, "mine/w") >= {"Mul", "MatMul", "Mean"}


def test_edges_point_back_unless_they_are_carried(tmp_path: Path) -> None:
    def build() -> Any:
        x = keras.Input((6,))
        model = keras.Model(x, layers.Dense(2)(layers.GRU(4)(layers.Reshape((3, 2))(x))))
        model.compile("sgd", "mse")
        return model

    trace = record(tmp_path, build, *data()).trace

    for index, op in enumerate(trace.ops):
        assert all(edge.op < index or edge.carried for edge in op.inputs)


def test_state_is_an_edge(tmp_path: Path) -> None:
    """A value that is written to a variable and read back within the step."""

    class Stored(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.w = self.add_weight(name="w", shape=(), initializer="ones")
            self.store = self.add_weight(name="store", shape=(), initializer="zeros", trainable=False)

        def call(self, x: Any) -> Any:
            self.store.assign(self.w * 2.0)
            return x * self.store

    recorded = record(tmp_path, around(lambda: Stored(name="mine")), *data())

    states = [edge for op in recorded.trace.ops for edge in op.inputs if edge.passes == "state"]
    assert {recorded.trace.ops[edge.op].type for edge in states} == {"AssignVariableOp"}
    assert recorded.outcome("mine/w") == "none"


def test_an_unused_branch_is_recorded_up_to_where_it_ends(tmp_path: Path) -> None:
    def build() -> Any:
        x = keras.Input((6,))
        hidden = layers.Dense(4, name="trunk")(x)
        forgotten = layers.Dense(3, activation="tanh", name="forgotten")(hidden)
        model = keras.Model(x, [layers.Dense(2, name="out")(hidden), forgotten])
        model.compile("sgd", loss=["mse", None])
        return model

    x, y = data()

    recorded = record(tmp_path, build, x, [y, np.zeros((16, 3), "float32")])

    assert recorded.outcome("forgotten/kernel") == "none"
    assert recorded.op("Tanh").name.rpartition("/")[0].rpartition("/")[2].startswith("forgotten")
    assert "Mean" not in influenced(recorded.trace, "forgotten/kernel")


def test_shape_arithmetic_is_left_out(tmp_path: Path) -> None:
    trace = structure(tmp_path, lambda w, x: x * w * tf.cast(tf.shape(x)[0], tf.float32) + tf.zeros_like(x))

    assert {"Shape", "StridedSlice", "ZerosLike", "Const"}.isdisjoint(op.type for op in trace.ops)


def test_layers_are_known_by_their_scopes(tmp_path: Path) -> None:
    trace = record(tmp_path, models.functional, *data()).trace

    assert {layer.name: layer.type for layer in trace.layers} == {
        "functional": "Functional",
        "hidden": "Dense",
        "out": "Dense",
    }


def test_each_loss_has_the_name_that_the_user_gave_it(tmp_path: Path) -> None:
    x, _ = data(rows=16)

    recorded = record(tmp_path, models.gan, x, np.ones((16, 2), "float32"))

    assert [target.name for target in recorded.trace.targets] == ["score", "d_loss", "g_loss"]
    assert recorded.gradient(_first_kernel(recorded, "judge"), target=1) > 0
    assert recorded.gradient(_first_kernel(recorded, "make"), target=2) > 0


def _first_kernel(recorded: Any, within: str) -> str:
    return next(str(v.name) for v in recorded.trace.variables if within in v.name and v.name.endswith("kernel"))


def test_without_source_no_line_of_the_user_is_in_the_log(tmp_path: Path) -> None:
    recorded = record(tmp_path, around(lambda: StepFilter(name="filter")), *data(), source=False)

    assert recorded.trace.sources == ()
    assert recorded.op("Less").api == "tf.sequence_mask"
    [file] = (tmp_path / "gradflow").iterdir()
    assert b"test_structure" not in file.read_bytes()


@pytest.mark.parametrize("tensors", ["layers", "variables"])
def test_fewer_tensors_are_measured_on_request(tensors: str, tmp_path: Path) -> None:
    everything = record(tmp_path / "all", models.functional, *data())
    fewer = record(tmp_path / tensors, models.functional, *data(), tensors=tensors)

    assert fewer.trace.ops == everything.trace.ops
    assert len(fewer.trace.tensor_gradients) < len(everything.trace.tensor_gradients)
    for name in ("hidden/kernel", "out/bias"):
        assert fewer.gradient(name) == everything.gradient(name)


def test_a_loss_that_is_read_from_a_metric_depends_on_what_was_written_to_it(tmp_path: Path) -> None:
    class FromMetric(models.Subclassed):
        def __init__(self) -> None:
            super().__init__()
            self.error = keras.metrics.MeanSquaredError(name="error")

        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = self.error(y, self(x, training=True))
            weights = self.trainable_variables
            gradients = tape.gradient(loss, weights)
            assert set(gradients) == {None}
            return {"loss": loss}

    def build() -> Any:
        model = FromMetric()
        model.compile("sgd")
        return model

    recorded = record(tmp_path, build, *data())

    [target] = recorded.trace.targets
    assert target.op >= 0
    assert {"AssignVariableOp", "MatMul", "Square"} <= {op.type for op in recorded.trace.ops}
    assert {edge.passes for op in recorded.trace.ops for edge in op.inputs if edge.passes == "state"} == {"state"}


def test_an_update_is_no_way_from_one_loss_to_the_next(tmp_path: Path) -> None:
    """The second loss reads weights that the first one's gradient has just changed."""

    class TwoSteps(models.Subclassed):
        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                first = tf.reduce_mean(tf.square(self(x) - y))
            weights = self.trainable_variables
            for weight, gradient in zip(weights, tape.gradient(first, weights), strict=True):
                weight.assign_sub(0.1 * gradient)
            with tf.GradientTape() as tape:
                second = tf.reduce_mean(tf.abs(self(x) - y))
            self.optimizer.apply(tape.gradient(second, weights), weights)
            return {"loss": second}

    def build() -> Any:
        model = TwoSteps()
        model.compile("sgd")
        return model

    trace = record(tmp_path, build, *data()).trace

    assert not any("gradient_tape" in op.name for op in trace.ops)
    assert not any(edge.passes == "state" for op in trace.ops for edge in op.inputs)


@pytest.mark.parametrize(("name", "type"), [("round", "Round"), ("argmax", "ArgMax"), ("sign", "Sign")])
def test_a_function_in_a_functional_model_has_the_name_that_the_user_called_it_by(
    name: str, type: str, tmp_path: Path
) -> None:
    """There it stands as a layer does, and no line of theirs is on the way when it runs."""
    options = {"axis": -1, "keepdims": True} if name == "argmax" else {}

    def gated(x: Any) -> Any:
        return x * keras.ops.cast(getattr(keras.ops, name)(x, **options), "float32")

    recorded = record(tmp_path, around(lambda: gated), *data())

    assert recorded.op(type).api == f"keras.ops.{name}"


@pytest.mark.parametrize("how", ["reduce", "for", "map"])
def test_what_tf_data_computes_with_variables_is_on_the_way_and_passes_no_gradient(how: str) -> None:
    slope, offset = tf.Variable([0.3, -0.2], name="slope"), tf.Variable(0.1, name="offset")
    scale = tf.Variable(1.5, name="scale")
    rows = tf.data.Dataset.from_tensor_slices(tf.constant([[1.0, 2.0], [3.0, 5.0], [0.5, 0.1]]))

    def value(row: tf.Tensor) -> tf.Tensor:
        return tf.square(tf.tensordot(slope, row, 1) + offset)

    @tf.function
    def total() -> tf.Tensor:
        if how == "reduce":
            return rows.reduce(0.0, lambda total, row: total + value(row))
        values = rows.map(value) if how == "map" else rows
        found = tf.constant(0.0)
        for each in values:
            found += each if how == "map" else value(each)
        return found

    report = tb_gradflow.explain(lambda: scale * total(), variables=[slope, offset, scale])

    assert {name: each.status for name, each in report.variables.items()} == {
        "slope": "disconnected",
        "offset": "disconnected",
        "scale": "connected",
    }
    [finding] = report.findings
    assert (finding.cause, finding.variables) == ("nondiff_op", ("slope", "offset"))
    assert "no gradient leaves a dataset" in finding.message


def test_a_function_that_is_mapped_over_a_structure_is_the_one_that_is_named() -> None:
    w = tf.Variable([1.0, 2.0], name="w")

    def loss() -> tf.Tensor:
        parts = tf.nest.map_structure(tf.stop_gradient, {"twice": w * 2.0, "thrice": w * 3.0})
        return tf.reduce_sum(parts["twice"] * parts["thrice"])

    [finding] = tb_gradflow.explain(loss, variables=[w]).findings

    assert finding.cause == "stop_gradient_misuse"
    assert "`tf.stop_gradient`" in finding.message
