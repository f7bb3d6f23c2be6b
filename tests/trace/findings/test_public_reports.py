"""Small forms of programs from public questions and bug reports, on which the report was once wrong, or offered an edit
that does not work."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tf_keras import backend

import tb_gradflow
from tb_gradflow.record.report import Finding
from tb_gradflow.serve.reports.report import Report

RANDOM = np.random.default_rng(11)
X = tf.constant(RANDOM.normal(size=(8, 4)), tf.float32)


def loud(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity != "info"]


def test_the_bias_of_a_last_convolution_of_a_critic_cancels_by_design() -> None:
    """A convolution over two axes reshapes its bias before it adds it."""
    layers = [keras.layers.Conv2D(2, 3, activation="tanh"), keras.layers.Conv2D(1, 2)]
    critic = keras.Sequential([keras.Input((4, 4, 1)), *layers])
    real, fake = (tf.constant(RANDOM.normal(size=(8, 4, 4, 1)), tf.float32) for _ in range(2))

    def loss() -> tf.Tensor:
        of_real, of_fake = -tf.reduce_mean(critic(real)), tf.reduce_mean(critic(fake))
        return (of_real + of_fake) + 10.0 * tf.reduce_mean(tf.square(critic.layers[0].kernel))

    report = tb_gradflow.explain(loss, variables=critic.trainable_variables)

    assert report.healthy
    assert [each.cause for each in report.findings if each.variables == (critic.layers[-1].bias.path,)] == [
        "shift_invariant_parameter"
    ]


@pytest.mark.parametrize("of_numbers", [True, False])
def test_values_outside_of_the_range_of_a_fake_quantiser_are_clipped(of_numbers: bool) -> None:
    weight, low, high = tf.Variable([-0.5, -2.0], name="weight"), tf.Variable(0.0), tf.Variable(6.0)

    def loss() -> tf.Tensor:
        if of_numbers:
            return tf.reduce_sum(tf.quantization.fake_quant_with_min_max_args(weight, min=0.0, max=6.0) - 1.0)
        return tf.reduce_sum(tf.quantization.fake_quant_with_min_max_vars(weight, low, high) - 1.0)

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight]))

    assert finding.cause == "saturation_clip"
    assert "clips every value of this step" in finding.message


def test_a_variable_that_was_trained_beyond_a_limit_is_not_at_a_minimum(tmp_path: Path) -> None:
    offset, other = tf.Variable([0.0], name="offset"), tf.Variable([0.0], name="other")

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            given = tf.clip_by_value(offset, -6.0, 6.0) + tf.clip_by_value(other, -1.0, 1.0)
            loss = tf.reduce_mean(tf.square(given * X[:, :1] + given - 90.0))
        for variable, gradient in zip((offset, other), tape.gradient(loss, (offset, other)), strict=True):
            variable.assign_sub(0.5 * gradient)

    for _ in range(4):
        step()
    step.flush()

    report = tb_gradflow.open_log(tmp_path).report()

    assert {finding.cause for finding in report.findings} == {"saturation_clip"}


def test_the_limit_may_be_written_first() -> None:
    weight, least = tf.Variable([-0.5, -2.0], name="weight"), tf.constant(0.5)

    def loss() -> tf.Tensor:
        return tf.reduce_sum(tf.square(tf.maximum(least, weight * 2.0) - 1.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert finding.edit is not None
    assert "stop_gradient(tf.maximum(least, " in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works
    assert "least + tf.stop_gradient" not in finding.edit.after + finding.fix


def test_no_edit_where_passing_the_limit_would_not_help() -> None:
    box, other = tf.Variable([5.0, 6.0], name="box"), tf.constant([0.0, 1.0])

    def loss() -> tf.Tensor:
        width = tf.maximum(0.0, tf.minimum(box[1], other[1]) - tf.maximum(box[0], other[0]))
        height = tf.maximum(0.0, tf.minimum(box[1], other[1]) - tf.maximum(box[0], other[0]))
        return 1.0 - width * height

    [finding] = loud(tb_gradflow.explain(loss, variables=[box]))

    assert (finding.cause, finding.edit) == ("saturation_clip", None)
    assert "does not help here" in finding.fix


class SparseKernel(keras.layers.Layer):
    """Keeps a sparse tensor of its weights, made once."""

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(2,), initializer="random_normal")
        self.kernel = tf.SparseTensor([[0, 0], [2, 1]], self.w.value, (int(input_shape[-1]), 2))

    def call(self, inputs: Any) -> Any:
        return tf.transpose(tf.sparse.sparse_dense_matmul(tf.sparse.transpose(self.kernel), tf.transpose(inputs)))


def test_an_edit_does_not_use_what_only_another_function_knows() -> None:
    layer = SparseKernel(name="sparse")
    layer(X)

    [finding] = loud(tb_gradflow.explain(lambda: tf.reduce_sum(layer(X)), variables=[layer.w]))

    assert finding.cause == "python_snapshot"
    assert finding.edit is None  # `input_shape` is a parameter of `build`
    assert "tf.identity" not in finding.message + finding.fix


def test_each_of_nested_casts_in_a_loop_is_told_from_the_other() -> None:
    start = np.random.default_rng(3).normal(size=(2, 4, 4)) * 2.0
    weights = [tf.Variable(each, dtype=tf.float32, name=f"w{place}") for place, each in enumerate(start)]

    def loss() -> tf.Tensor:
        x = X
        for weight in weights:
            x = tf.cast(tf.cast(tf.matmul(x, weight) + 0.5, tf.int32), tf.float32)
        return tf.reduce_mean(tf.square(x - 1.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=weights, try_fixes=True))

    assert finding.cause == "integer_dtype"
    assert finding.edit is not None
    assert "stop_gradient(tf.cast(tf.cast(value, tf.int32), tf.float32) - value)" in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works


def test_what_a_comprehension_assigns_is_not_kept_beside_it() -> None:
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    values = [tf.Variable(each.numpy() + 0.1, name=f"value{place}") for place, each in enumerate(network.weights)]

    def loss() -> tf.Tensor:
        kept = [var.assign(val * 1.0) for var, val in zip(network.trainable_variables, values, strict=True)]

        def named(var: Any) -> Any:
            return var, len(kept)

        return tf.reduce_sum(named(network(X))[0])

    [finding] = loud(tb_gradflow.explain(loss, variables=values))

    assert (finding.cause, finding.edit) == ("variable_assign", None)


def test_a_loop_over_a_dataset_in_a_function_computes_inside_of_the_dataset() -> None:
    dataset, weight = tf.data.Dataset.from_tensor_slices([2.0, 3.0]), tf.Variable(1.0, name="weight")

    @tf.function
    def loss() -> Any:
        x = weight * 1.0
        for each in dataset:
            x = x * each
        return x

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight]))

    assert finding.cause == "nondiff_op"
    assert "outside of `tf.function`" in finding.fix
    assert "LookupError" not in finding.message


def test_a_straight_through_estimator_without_a_stop() -> None:
    """The comparison and the maximum between them pass no gradient, and are none of the paths that cancel."""
    weight = tf.Variable(RANDOM.normal(size=(4, 3)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        y = tf.nn.softmax(X @ weight)
        hard = tf.cast(tf.equal(y, tf.reduce_max(y, 1, keepdims=True)), y.dtype)
        y = (hard - y) + y
        return tf.reduce_sum(tf.square(y - 0.5) * tf.range(3.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert finding.cause == "gradient_cancellation"
    assert finding.edit is not None
    assert "y + tf.stop_gradient(hard - y)" in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works


def test_the_second_derivative_of_a_linear_network(tmp_path: Path) -> None:
    weight, x = tf.Variable([[2.0]], name="weight"), tf.constant([[0.5], [1.0]])

    @tb_gradflow.watch(tmp_path)
    def step() -> None:
        with tf.GradientTape() as tape, tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                u = x @ weight
            u_x = inner.gradient(u, x)
        u_xx = outer.gradient(u_x, x)
        loss = tf.reduce_mean((u_xx + 1.0) ** 2)
        weight.assign_sub(tape.gradient(loss, weight))

    with pytest.raises(TypeError):
        step()
    step.flush()

    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert (finding.cause, finding.variables) == ("second_order_missing", ("x",))
    assert "linear in `x`" in finding.message


def test_all_logarithms_of_a_line_are_bounded_by_one_edit() -> None:
    weight = tf.Variable([[-9.0], [0.1], [0.1], [9.0]], name="weight")

    def loss() -> tf.Tensor:
        p, q = tf.nn.relu(X @ weight), tf.nn.relu(-X @ weight)
        return -tf.reduce_mean(0.5 * tf.math.log(p) + 0.5 * tf.math.log(q))

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight]))

    assert finding.edit is not None
    assert finding.edit.after.count("tf.maximum") == 2
    assert finding.alternatives == ()


def test_a_gradient_of_a_gradient_that_was_requested_after_the_block(tmp_path: Path) -> None:
    x, weight = tf.constant(2.0), tf.Variable(3.0, name="weight")

    @tb_gradflow.watch(tmp_path)
    def step() -> Any:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x * weight
        slope = tape.gradient(y, x)
        return tape.gradient(slope, weight)

    assert step() is None
    step.flush()

    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.cause == "tape_scope"
    assert "`slope = tape.gradient(y, x)` (line " in finding.message
    assert finding.fix == "Move `slope = tape.gradient(y, x)` into the `with` block."


def test_a_loss_of_the_labels_alone_says_so(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("adam", lambda labels, predictions: tf.reduce_sum(labels[:, 1:] - labels[:, :-1]))
    with pytest.raises(ValueError, match="No gradients provided"):
        model.fit(X, X[:, :3], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.cause == "output_not_used"
    assert "the loss depends on no variable" in finding.message
    assert "`y_pred`" in finding.fix


def test_no_bound_for_the_base_of_a_power_that_is_a_number() -> None:
    exponent = tf.Variable(10.0, name="exponent")

    def loss() -> tf.Tensor:
        return tf.where(exponent < 15.0, exponent, tf.pow(10.0, tf.exp(exponent)))

    [finding] = loud(tb_gradflow.explain(loss, variables=[exponent], try_fixes=True))

    assert finding.cause == "where_inactive_branch"
    assert finding.tried is not None
    assert finding.tried.works
    assert not any("maximum(10.0" in each.edit.after for each in finding.alternatives)


def test_a_second_derivative_that_was_requested_of_a_watched_tensor_after_the_block() -> None:
    net = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])

    def loss() -> tf.Tensor:
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(X)
            u = net(X)
        u_x = inner.gradient(u, X)
        u_xx = inner.gradient(u_x, X)
        return tf.reduce_mean(tf.square(u)) + (0.0 if u_xx is None else tf.reduce_mean(tf.square(u_xx)))

    [finding] = loud(tb_gradflow.explain(loss, variables=net.trainable_variables))

    assert finding.cause == "tape_scope"
    assert finding.fix == "Move `u_x = inner.gradient(u, X)` into the `with` block."
    assert finding.edit is not None
    assert "    u_x = inner.gradient(u, X)" in finding.edit.after


def test_no_edit_of_a_comparison_of_signs() -> None:
    weight = tf.Variable([[0.3], [-0.2], [0.5], [0.1]], name="weight")

    def loss() -> tf.Tensor:
        rising = tf.sign(X @ weight)
        hit = tf.equal(tf.sign(X[:, :1]), rising)
        return 1.0 - tf.reduce_mean(tf.cast(hit, tf.float32))

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert finding.cause == "nondiff_counting"
    assert finding.edit is None
    assert finding.fix == "Train on a loss without steps, such as a squared error, and count in a metric."


def test_a_logarithm_in_a_difference_that_is_not_a_number_may_be_of_zero(tmp_path: Path) -> None:
    """The difference of two infinities says nothing of their signs."""
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, use_bias=False)])

    def loss(labels: Any, predictions: Any) -> Any:
        one, other = tf.abs(tf.signal.rfft(labels)), tf.abs(tf.signal.rfft(predictions))
        return tf.reduce_mean(tf.square(tf.math.log(one) - tf.math.log(other)))

    silent = X * tf.cast(tf.range(8)[:, tf.newaxis] > 1, tf.float32)
    model.compile("sgd", loss)
    model.fit(silent, silent, verbose=0, epochs=3, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    finding = loud(tb_gradflow.open_log(tmp_path).report())[0]

    assert finding.cause == "log_zero"
    assert "a value of zero or less" in finding.message


def test_a_training_that_overflows_is_told_by_what_has_grown(tmp_path: Path) -> None:
    """The op at which a number first becomes too large is nobody's fault."""
    keras.utils.set_random_seed(12)
    random = np.random.default_rng(12)
    size, rooms = random.uniform(500, 4000, size=(64, 1)), random.integers(1, 7, size=(64, 1))
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    callback = tb_gradflow.GradFlowCallback(tmp_path)
    model.fit(np.hstack([size, rooms]), size * 120 + rooms * 9000, epochs=4, verbose=0, callbacks=[callback])

    first, *_ = loud(tb_gradflow.open_log(tmp_path).report())

    assert first.cause == "exploding_recurrence"
    assert "the last recorded step before it started" in first.message
    assert "lower the learning rate" in first.fix


def test_what_is_only_drawn_from_is_not_moved(tmp_path: Path) -> None:
    """A step that runs again is given what it drew."""
    scores, decoder = keras.layers.Dense(6, name="scores"), keras.layers.Dense(4)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            scores,
            keras.layers.Lambda(lambda x: tf.one_hot(tf.random.categorical(x, 1)[:, 0], 6), output_shape=(6,)),
            decoder,
        ]
    )
    model.compile("adam", "mse")
    model.fit(X, X, verbose=0, epochs=2, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.cause == "nondiff_sampling"
    assert [each.text for each in finding.evidence] == [
        "Whether the loss depends on `sequential/scores/kernel` was not tried, because the step cannot run again: the "
        "random numbers that follow from this variable would be others."
    ]


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (lambda weight: backend.mean(backend.round(weight)), "backend.round"),
        (lambda weight: tf.reduce_sum(tf.abs(tf.signal.rfft3d(tf.reshape(weight, [1, 2, 2])))), "tf.signal.rfft3d"),
    ],
)
def test_a_function_without_a_public_name_is_called_as_in_the_line(loss: Any, name: str) -> None:
    weight = tf.Variable([0.3, 0.6, 1.2, 2.4], name="weight")

    [finding] = loud(tb_gradflow.explain(lambda: loss(weight), variables=[weight]))

    assert f"`{name}` (test_public_reports.py:" in finding.message
    assert name in finding.fix


def test_a_layer_that_is_called_is_not_told_to_be_called() -> None:
    class Scaled(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.temperature = self.add_weight(name="temperature", shape=(), initializer="ones")
            self.inverse = 1.0 / float(self.temperature)

        def call(self, x: Any) -> Any:
            return x * self.inverse

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), Scaled(name="scaled")])
    model.compile("adam", "mse")

    [finding] = loud(tb_gradflow.explain(model, X.numpy(), X.numpy()[:, :3]))

    assert finding.cause == "python_snapshot"
    assert "the step uses `self.inverse`" in finding.message
    assert finding.fix.startswith("Compute `self.inverse` from it inside the step")


def test_a_relu_of_zeros_multiplies_by_nothing() -> None:
    dense = keras.layers.Dense(8, "relu", kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((4,)), dense, keras.layers.Dense(1)])
    model.compile("adam", "mse")

    finding = loud(tb_gradflow.explain(model, X.numpy(), X.numpy()[:, :1]))[0]

    assert finding.cause == "zero_init_product"
    assert "is given zeros, at which it is flat" in finding.message


def test_a_bound_is_no_computation_from_the_logits() -> None:
    weight = tf.Variable([[900.0, -900.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], name="weight")

    def predicted() -> tf.Tensor:
        return tf.nn.softmax(X @ weight)

    def loss() -> tf.Tensor:
        return -tf.reduce_mean(tf.math.log(predicted()))

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight]))

    assert finding.cause == "log_zero"
    assert finding.edit is not None
    assert "maximum" in finding.edit.after
    assert finding.fix.startswith("Compute it from the logits: `tf.nn.log_softmax(logits)`")


@pytest.mark.parametrize("is_variable", [True, False])
def test_a_value_that_is_handed_to_predict_leaves_tensorflow_there(is_variable: bool) -> None:
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    image = tf.Variable(X, name="image") if is_variable else X

    def loss() -> Any:
        predicted = network.predict(tf.sigmoid(image), verbose=0)
        return tf.reduce_sum(predicted)

    [finding] = loud(tb_gradflow.explain(loss, variables=[image]))

    assert finding.cause == "python_escape"
    assert "`.predict()`" in finding.message
    assert finding.fix == "Stay in TensorFlow: `predicted = network(tf.sigmoid(image))`."


def test_the_elements_of_a_dataset_that_an_eager_step_makes_are_computed_from_its_rows() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    def loss() -> Any:
        total = tf.zeros([])
        for each in tf.data.Dataset.from_tensor_slices(weight * 2.0):
            total += each**2 if float(each) > 0 else 0.0
        return total

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight]))

    assert finding.cause == "nondiff_op"
    assert "no gradient leaves a dataset" in finding.message


def test_a_head_whose_copy_is_called_is_missed_like_the_rest_of_its_network() -> None:
    layers = [keras.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(2)]
    encoder = keras.Sequential(layers[:2], name="encoder")
    head = keras.Sequential([keras.Input((3,)), layers[2]], name="projection_head")
    copies = [keras.models.clone_model(each) for each in (encoder, head)]
    trained = [*encoder.trainable_variables, *head.trainable_variables]

    def loss() -> Any:
        value = X
        for each in copies:
            value = each(value)
        return tf.reduce_mean(value**2)

    report = tb_gradflow.explain(loss, variables=trained)

    [finding] = loud(report)
    assert "another network with the same names" in finding.message
    assert len(finding.variables) == 4
    assert "unused_by_design" not in [each.cause for each in report.findings]


def test_only_zeros_that_keep_each_other_at_zero_are_named() -> None:
    """A last layer of zeros learns; a branch of two such layers never does."""

    def branch(x: Any) -> Any:
        x = keras.layers.Dense(4, kernel_initializer="zeros", use_bias=False)(x)
        return keras.layers.Dense(4, kernel_initializer="zeros", use_bias=False)(x)

    image = keras.Input((4, 4))
    value = keras.layers.Dense(4, activation="tanh")(image)
    value = keras.layers.Add()([value, branch(value)])
    network = keras.Model(image, keras.layers.Conv1D(1, 1, kernel_initializer="zeros")(value))
    network.compile(keras.optimizers.SGD(0.1), "mse")
    network.fit(tf.stack([X] * 4, axis=1), X[:, :1], verbose=0)

    report = tb_gradflow.explain(network, tf.stack([X] * 4, axis=1), X[:, :1])

    [finding] = loud(report)
    assert finding.cause == "zero_init_product"
    assert finding.variables == ("dense_1/kernel", "dense_2/kernel")
    assert "`dense_2/kernel`, which is all zeros and gets no gradient either" in finding.message
    assert finding.edit is None


def test_an_offset_before_a_softmax_over_two_axes_is_harmless(tmp_path: Path) -> None:
    """Keras writes that softmax as `exp(x - logsumexp(x))`; a normalisation follows it."""
    image = keras.Input((4, 4, 8))
    attended = keras.layers.MultiHeadAttention(2, 8, attention_axes=(1, 2))(image, image)
    value = keras.layers.GroupNormalization(2)(keras.layers.Add()([image, attended]))
    model = keras.Model(image, keras.layers.Dense(1)(value))
    model.compile("adam", "mse")
    x = RANDOM.normal(size=(8, 4, 4, 8))
    model.fit(x, x[..., :1], epochs=3, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    report = tb_gradflow.open_log(tmp_path).report()

    assert loud(report) == []
    assert "shift_invariant_parameter" in [each.cause for each in report.findings]


def test_limits_that_are_exchanged_are_not_passed_by() -> None:
    weight = tf.Variable(1.0, name="weight")

    def loss() -> Any:
        return tf.clip_by_value(weight, 1.1, 0.9) * 2.0

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight]))

    assert finding.fix == "Exchange the two limits."
    assert finding.alternatives == ()


class _Anything:
    """Knows every attribute, as dictionaries with attributes do: each that was not set is 0."""

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "__dict__").get(name, 0) if name != "__dict__" else {}


def test_a_setting_with_every_attribute_stops_no_fix() -> None:
    weight, settings = tf.Variable([0.4, 1.7], name="weight"), _Anything()

    def loss() -> Any:
        return tf.reduce_sum(tf.round(weight)) + settings.shift

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert finding.tried is not None
    assert finding.tried.works


def test_a_cell_whose_state_is_not_passed_on_sees_several_time_steps() -> None:
    cell, head = keras.layers.SimpleRNNCell(3), keras.layers.Dense(1)
    cell.build((8, 2))
    head.build((8, 3))

    def loss() -> Any:
        state, outputs = [tf.zeros((8, 3))], []
        for place in range(2):
            output, _ = cell(X[:, 2 * place : 2 * place + 2], state)
            outputs.append(output)
        return tf.reduce_mean(head(tf.add_n(outputs)) ** 2)

    report = tb_gradflow.explain(loss, variables=[*cell.trainable_variables, *head.trainable_variables])

    [finding] = loud(report)
    assert finding.cause == "recurrent_weight_single_step"
    assert "called several times, each time with a state of zeros" in finding.message
    assert "pass on the state" in finding.fix


def test_nan_that_an_eager_step_computes_from_data_alone_is_told_where_it_is_computed(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    optimizer, mask = keras.optimizers.SGD(0.1), tf.zeros(8)

    @tb_gradflow.watch(tmp_path)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            weight = mask / tf.reduce_mean(mask)
            loss = tf.reduce_mean(tf.squeeze(model(x)) ** 2 * weight)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    tf.config.run_functions_eagerly(True)
    try:
        step(X)
    finally:
        tf.config.run_functions_eagerly(False)
    step.flush()

    [finding, *_] = loud(tb_gradflow.open_log(tmp_path).report())
    assert (finding.cause, finding.source and finding.source.code) == (
        "zero_over_zero",
        "weight = mask / tf.reduce_mean(mask)",
    )


def test_a_sample_of_numpy_cuts_off_the_network_that_gave_its_mean() -> None:
    """The encoder still learns, from the other term of the loss alone."""
    encoder, decoder = keras.layers.Dense(2), keras.layers.Dense(4)
    encoder.build((8, 4))
    decoder.build((8, 2))

    def loss() -> Any:
        mean = encoder(X)
        sample = tf.cast(np.random.normal(mean, np.ones((8, 2))), tf.float32)
        return tf.reduce_mean((decoder(sample) - X) ** 2) + tf.reduce_mean(mean**2)

    report = tb_gradflow.explain(loss, variables=[*encoder.trainable_variables, *decoder.trainable_variables])

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("python_escape", "info")
    assert "incomplete gradient" in finding.message
    assert "`np.random.normal`" in finding.message
    assert "tf.random.normal(tf.shape(mean))" in finding.fix


def test_an_attribute_that_is_called_like_an_op_may_be_a_layer() -> None:
    class Network(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.relu = keras.layers.Dense(1, activation="relu", bias_initializer="ones")

        def call(self, x: Any) -> Any:
            return self.relu(x)

    model = Network()
    model.compile("sgd", "mse")

    [finding] = loud(tb_gradflow.explain(model, X, -1.0 - X[:, :1] ** 2))

    assert finding.cause == "targets_out_of_reach"
    assert finding.fix.startswith("Remove the activation of layer `dense")


def test_a_target_that_is_a_constant_on_purpose_has_no_edit() -> None:
    network = keras.layers.Dense(2)
    network.build((8, 4))

    def loss() -> Any:
        target = 0.9 * np.max(network(X + 1.0).numpy(), axis=1)
        return tf.reduce_mean((target - tf.reduce_max(network(X), axis=1)) ** 2)

    [finding] = tb_gradflow.explain(loss, variables=network.trainable_variables).findings

    assert (finding.cause, finding.severity) == ("python_escape", "info")
    assert finding.fix.startswith("Nothing to fix if this part is a constant on purpose. Otherwise, stay in TensorFlow")
    assert finding.edit is None


def test_a_tape_that_opens_too_late_is_opened_before_the_first_of_several_lines(tmp_path: Path) -> None:
    """Weights of tasks that are to balance the norms of the gradients."""
    shared, weights = tf.Variable(tf.ones([4, 1])), tf.Variable([1.0, 1.0], name="weights")

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def balance() -> Any:
        with tf.GradientTape(persistent=True) as tape:
            result = X @ shared
            first, second = weights[0] * tf.reduce_mean(result**2), weights[1] * tf.reduce_mean(result**4)
        norms = [tf.norm(tape.gradient(first, shared)), tf.norm(tape.gradient(second, shared))]
        with tf.GradientTape() as of_weights:
            loss = tf.abs(norms[0] - norms[1])
        return of_weights.gradient(loss, [weights])

    balance()
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.cause == "tape_scope"
    assert finding.fix.startswith("Open the `with` block before `first, second = weights[0]")


def fitted(model: keras.Model, directory: Path) -> Report:
    """What is said of a model with a `train_step` of its own after some steps."""
    model.compile()
    recorder = tb_gradflow.GradFlowCallback(directory, update_freq=1)
    model.fit(X, tf.reduce_sum(X, 1, keepdims=True), batch_size=1, epochs=4, verbose=0, callbacks=[recorder])
    return tb_gradflow.open_log(directory).report()


class Balanced(keras.Model):
    """Learns the uncertainty of a task, but holds it in a plain `tf.Variable`; the weight of the other term is not
    meant to be learned."""

    def __init__(self) -> None:
        super().__init__()
        self.body = keras.layers.Dense(1)
        self.log_variances = [tf.Variable(0.0, name="log_variance")]
        self.strength = tf.Variable(0.1, name="strength")
        self.own_optimizer = keras.optimizers.SGD(0.01)

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self.body(x) - y))
            [log_variance] = self.log_variances
            loss = tf.exp(-log_variance) * error + log_variance
            loss += self.strength * tf.reduce_sum(tf.square(self.body.kernel))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.own_optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def test_a_plain_variable_that_a_model_holds_in_a_list_is_not_trained(tmp_path: Path) -> None:
    findings = fitted(Balanced(), tmp_path).findings
    said = {each.variables: each for each in findings if each.cause == "untracked_variable"}

    assert {names: each.severity for names, each in said.items()} == {
        ("log_variance",): "warning",
        ("strength",): "info",
    }
    assert "add_weight" in said["log_variance",].fix


class Discounting(keras.Model):
    """The discount, and the size of noise in the input, are numbers that nobody trains. The deviation of what it draws
    is to be learned."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.target = keras.layers.Dense(1), keras.layers.Dense(1, trainable=False)
        self.discount, self.noise = tf.Variable(0.9, name="discount"), tf.Variable(0.1, name="noise")
        self.log_deviation = tf.Variable(-1.0, name="log_deviation")
        self.own_optimizer = keras.optimizers.SGD(0.01)

    def train_step(self, data: Any) -> dict[str, Any]:
        x, reward = data
        expected = reward + self.discount * self.target(x + 1.0)
        with tf.GradientTape() as tape:
            value = self.value(x + self.noise * tf.random.normal(tf.shape(x)))
            value += tf.exp(self.log_deviation) * tf.random.normal(tf.shape(value))
            loss = tf.reduce_mean(tf.square(value - expected))
        gradients = tape.gradient(loss, self.value.trainable_variables)
        self.own_optimizer.apply_gradients(zip(gradients, self.value.trainable_variables, strict=True))
        return {"loss": loss}


def test_a_number_that_only_scales_data_is_no_parameter_that_was_forgotten(tmp_path: Path) -> None:
    [finding] = loud(fitted(Discounting(), tmp_path))

    assert (finding.cause, finding.variables) == ("untracked_variable", ("log_deviation",))


class Smoothing(keras.layers.Layer):
    """Takes the number out of the coefficient when it is built."""

    def build(self, shape: Any) -> None:
        self.alpha = self.add_weight(name="alpha", shape=(), initializer="zeros")
        rate = 1.0 / (1.0 + np.exp(-keras.ops.convert_to_numpy(self.alpha)))
        self.weights_of_past = tf.constant([rate * (1 - rate) ** k for k in range(shape[1])], tf.float32)

    def call(self, series: Any) -> Any:
        return keras.ops.sum(series * self.weights_of_past, axis=1, keepdims=True) * series


class Noisy(keras.layers.Layer):
    """Draws its noise once."""

    def build(self, shape: Any) -> None:
        self.mean = self.add_weight(name="mean", shape=(shape[-1], 1))
        self.spread = self.add_weight(name="spread", shape=(shape[-1], 1), initializer="ones")
        self.kernel = self.mean + self.spread * keras.random.normal((shape[-1], 1), seed=1)

    def call(self, x: Any) -> Any:
        return keras.ops.matmul(x, self.kernel)


def test_a_kernel_that_was_drawn_when_the_layer_was_built() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), Noisy()])
    model.compile("sgd", "mse")

    [finding] = loud(tb_gradflow.explain(model, X.numpy(), X.numpy()[:, :1]))

    assert finding.cause == "python_snapshot"
    assert len(finding.variables) == 2
    assert "the step uses `self.kernel` (line " in finding.message


def test_a_number_that_was_taken_from_a_variable_when_the_layer_was_built() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), Smoothing(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    [finding] = loud(tb_gradflow.explain(model, X, tf.ones([8, 1])))

    assert (finding.cause, finding.severity) == ("python_snapshot", "error")
    assert "the step uses `self.weights_of_past`" in finding.message


class Sized(keras.layers.Layer):
    """Takes the size of a weight that it forgets."""

    def build(self, shape: Any) -> None:
        self.used = self.add_weight(name="used", shape=(shape[1], 2))
        self.forgotten = self.add_weight(name="forgotten", shape=(shape[1], 2))
        self.root = float(np.sqrt(self.forgotten.shape[0])) * int(np.ndim(self.forgotten))

    def call(self, x: Any) -> Any:
        return x @ self.used / self.root


def test_the_size_of_a_variable_is_none_of_its_values() -> None:
    model = keras.Sequential([keras.Input((4,)), Sized(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    [finding] = loud(tb_gradflow.explain(model, X, tf.ones([8, 1])))

    assert finding.cause == "output_not_used"


def test_variables_without_a_name_are_no_copies_of_each_other() -> None:
    used, forgotten = tf.Variable(tf.ones([4, 1])), tf.Variable(2.0)

    [finding] = loud(tb_gradflow.explain(lambda: tf.reduce_mean(tf.square(X @ used)), variables=[used, forgotten]))

    assert finding.cause == "output_not_used"
    assert "another network" not in finding.message


def test_an_edit_computes_with_tensorflow_what_numpy_computed_before_the_step() -> None:
    log_scale = tf.Variable(0.3, name="log_scale")
    scale = np.exp(log_scale.numpy())

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(scale * X - 1.0))

    [finding] = tb_gradflow.explain(loss, variables=[log_scale]).findings

    assert finding.cause == "python_snapshot"
    assert finding.edit is not None
    assert "tf.exp(log_scale) * X" in finding.edit.after


def test_a_layer_that_a_dataset_calls_gets_no_gradient(tmp_path: Path) -> None:
    scale, kernel = tf.Variable(2.0, name="scale"), tf.Variable(tf.ones([4, 1]), name="kernel")
    batches = tf.data.Dataset.from_tensors(X).map(lambda rows: rows * scale)

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step(rows: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(rows @ kernel - 1.0))
        return tape.gradient(loss, [scale, kernel])

    for rows in batches:
        step(rows)
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert (finding.cause, finding.severity, finding.variables) == ("tape_scope", "error", ("scale",))
    assert "a function of a dataset uses it (test_public_reports.py:" in finding.message


def test_probabilities_that_are_summed_with_one_factor_for_each_row_are_not_saturated() -> None:
    """A policy loss that forgets which action was taken."""
    kernel = tf.Variable(0.1 * RANDOM.normal(size=(4, 3)), dtype=tf.float32)
    advantages = tf.constant(RANDOM.normal(size=(8, 1)), tf.float32)

    def loss() -> tf.Tensor:
        return -tf.reduce_mean(tf.reduce_sum(tf.nn.softmax(X @ kernel) * advantages, axis=1))

    [finding] = tb_gradflow.explain(loss, variables=[kernel]).findings

    assert finding.cause == "normalised_then_summed"


class Pretrained(keras.Model):
    """Trains its encoder alone; `call` is for the next phase."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.layers.Dense(3)
        self.probe = keras.layers.Dense(1, name="probe")

    def call(self, x: Any) -> Any:
        return self.probe(self.encoder(x))

    def train_step(self, data: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.encoder(data[0]) - 1.0))
        gradients = zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
        self.optimizer.apply_gradients([each for each in gradients if each[0] is not None])
        return {"loss": loss}


def test_a_head_that_only_call_uses_is_a_warning() -> None:
    model = Pretrained()
    model(X)
    model.compile("sgd")

    report = tb_gradflow.explain(model, keras.ops.convert_to_numpy(X), keras.ops.convert_to_numpy(X))
    [finding] = [each for each in report.findings if each.cause == "output_not_used"]

    assert finding.severity == "warning"
    assert "`train_step` neither goes through `call`" in finding.message


def test_a_list_of_the_variables_of_another_network_is_named(tmp_path: Path) -> None:
    """A discriminator's loss whose gradient is requested for the generator."""
    made, judge = tf.Variable(tf.ones([4, 2]), name="made"), tf.Variable(tf.ones([2, 1]), name="judge")

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.stop_gradient(X @ made) @ judge))
        none = tape.gradient(loss, [made])
        with tf.GradientTape() as tape:
            loss_of_maker = tf.reduce_mean(tf.square(X @ made @ judge - 1.0))
        return none, tape.gradient(loss_of_maker, [made])

    step()
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert (finding.cause, finding.severity, finding.variables) == ("not_in_gradient_sources", "error", ("judge",))
    assert "was given `made` instead" in finding.message
    assert finding.edit is None


def test_the_headline_says_that_nothing_has_changed(tmp_path: Path) -> None:
    weight = tf.Variable(1.0, name="weight")

    @tb_gradflow.watch(tmp_path, update_freq=1)
    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.square(weight - 3.0)
        return tape.gradient(loss, weight)

    for _ in range(6):
        step()
    step.flush()

    said = " ".join(str(tb_gradflow.open_log(tmp_path).report()).split())
    assert "The gradient reaches the trainable variable, but none of the 6 recorded steps has changed" in said


def test_the_loss_of_a_quantile_compares_every_row_with_every_label() -> None:
    kernel, labels = tf.Variable(tf.ones([4, 1]), name="kernel"), tf.constant(RANDOM.normal(size=8), tf.float32)

    def loss(labels: tf.Tensor) -> tf.Tensor:
        error = labels - X @ kernel
        return tf.reduce_mean(tf.maximum(0.9 * error, -0.1 * error))

    [finding] = tb_gradflow.explain(loss, variables=[kernel], args=(labels,)).findings

    assert (finding.cause, finding.severity) == ("labels_broadcast", "warning")


@pytest.mark.parametrize("reads_the_loss", [False, True])
def test_a_gradient_may_be_taken_in_a_branch_of_a_loss_from_before_it(tmp_path: Path, reads_the_loss: bool) -> None:
    def trained(watch: Any) -> tuple[list[float], Any]:
        every, second, count = tf.Variable([[1.0]] * 4), tf.Variable([[2.0]] * 4), tf.Variable(0)

        @watch
        def step() -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(X @ every - 1.0))
            every.assign_sub(0.1 * tape.gradient(loss, every))
            count.assign_add(1)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(X @ second - 1.0))

            def update() -> tf.Operation:
                rate = 0.1 / (1.0 + loss) if reads_the_loss else 0.1
                second.assign_sub(rate * tape.gradient(loss, second))
                return tf.no_op()

            tf.cond(tf.equal(count % 2, 0), update, tf.no_op)
            return loss

        return [float(step()) for _ in range(4)], step

    losses, step = trained(tb_gradflow.watch(tmp_path, update_freq=1))
    step.flush()

    assert losses == trained(tf.function)[0]
    log = tb_gradflow.open_log(tmp_path)
    assert [[each.status for each in log.report(step).variables.values()] for step in (1, 3)] == [["connected"] * 2] * 2
    assert log.report(3).healthy


def test_what_an_update_broke_explains_a_gradient_inside_the_next_loss(tmp_path: Path) -> None:
    """A critic with two steps, whose penalty breaks in the first: its last kernel starts at zero."""
    maker = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(5, use_bias=False), keras.layers.BatchNormalization()]
    )
    layers = [keras.layers.Dense(6, activation="tanh"), keras.layers.Dense(1, kernel_initializer="zeros")]
    critic = keras.Sequential([keras.Input((5,)), *layers])

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        for _ in range(2):
            with tf.GradientTape() as tape:
                made = maker(X, training=True)
                with tf.GradientTape() as inner:
                    inner.watch(made)
                    score = critic(made)
                slopes = inner.gradient(score, made)
                norm = tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=1))
                loss = tf.reduce_mean(score) + tf.reduce_mean(tf.square(norm - 1.0))
            variables = critic.trainable_variables
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(0.1 * gradient)

    step()
    step.flush()
    report = tb_gradflow.open_log(tmp_path).report()

    assert [each.cause for each in report.findings if each.severity == "error"] == ["sqrt_at_zero"]
    assert not any("all zeros" in each.message for each in report.findings)


@pytest.mark.parametrize("is_masked", [True, False])
def test_a_penalty_that_is_switched_off_explains_no_other_path(is_masked: bool) -> None:
    attention, output = (
        keras.layers.Dense(units, kernel_regularizer=keras.regularizers.L2(0.0), use_bias=False) for units in (4, 1)
    )
    model = keras.Sequential([keras.Input((4,)), attention, output])
    mask = tf.fill([8, 4], not is_masked)

    def loss() -> tf.Tensor:
        kept = tf.where(mask, attention(X), tf.zeros_like(X))
        return tf.reduce_mean(tf.square(output(kept) + X[:, :1] @ output.kernel[:1] - 1.0)) + sum(model.losses)

    report = tb_gradflow.explain(loss, variables=[attention.kernel, output.kernel])

    assert report.healthy
    of_kernel = [each.cause for each in report.findings if attention.kernel.path in each.variables]
    assert of_kernel == ["branch_not_taken"] * is_masked


def test_a_tensor_from_before_the_step_is_shown_where_its_own_loss_uses_it(tmp_path: Path) -> None:
    logarithm, weight = tf.Variable(0.3, name="logarithm"), tf.Variable([[0.5]] * 4, name="weight")
    rate = tf.exp(logarithm)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape(persistent=True) as tape:
            entropy = tf.reduce_mean(X @ weight)
            loss = tf.square(entropy) * rate
            loss_of_rate = -rate * tf.stop_gradient(entropy)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        tape.gradient(loss_of_rate, logarithm)

    step()
    step.flush()
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.cause == "python_snapshot"
    assert finding.source is not None
    assert finding.source.code.startswith("loss_of_rate = ")


LABELS = np.eye(3, dtype=np.float32)[RANDOM.integers(0, 3, 8)]


@pytest.mark.parametrize("function", ["softmax", "sigmoid"])
@pytest.mark.parametrize("given", ["exchanged", "right", "of a teacher"])
def test_labels_and_logits_may_be_exchanged(function: str, given: str) -> None:
    layer = keras.layers.Dense(3, activation=function if given != "right" else None)
    model = keras.Sequential([keras.Input((4,)), layer])
    cross_entropy = getattr(tf.nn, f"{function}_cross_entropy_with_logits")
    batch = LABELS if given != "of a teacher" else RANDOM.normal(size=(8, 3)).astype(np.float32)

    def loss(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        made = model(x)
        labels, logits = (y, made) if given == "right" else (made, y)
        return tf.reduce_mean(cross_entropy(labels=labels, logits=logits))

    report = tb_gradflow.explain(loss, args=(X, tf.constant(batch)), variables=model.trainable_variables)

    if given != "exchanged":
        assert report.healthy
        return
    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("probabilities_as_logits", "warning")
    assert "exchanged" in finding.message
    assert "labels=" in finding.fix


@pytest.mark.parametrize("judge", ["left out", "trained", "trained before"])
def test_two_losses_may_train_the_same_variables_and_none_their_judge(tmp_path: Path, judge: str) -> None:
    """The gradient of the loss of a discriminator is requested for the generator."""
    made_by, judged_by = (
        keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(units)])
        for units in (4, 1)
    )
    if judge == "trained before":
        for layer in judged_by.layers:
            layer.bias.assign(tf.ones_like(layer.bias))

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape, tf.GradientTape() as other:
            false = judged_by(made_by(X))
            loss = tf.reduce_mean(tf.nn.softplus(-false))
            loss_of_judge = tf.reduce_mean(tf.nn.softplus(false) + tf.nn.softplus(-judged_by(X)))
        trained = judged_by if judge == "trained" else made_by
        gradients = tape.gradient(loss, made_by.trainable_variables)
        of_judge = other.gradient(loss_of_judge, trained.trainable_variables)
        for variable, gradient in zip(made_by.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        for variable, gradient in zip(trained.trainable_variables, of_judge, strict=True):
            variable.assign_sub(0.1 * gradient)

    for _ in range(6):
        step()
    step.flush()
    report = tb_gradflow.open_log(tmp_path).report()

    assert report.healthy == (judge != "left out")
    if judge == "left out":
        [finding] = loud(report)
        assert finding.cause == "untracked_variable"
        assert {each.partition("/")[0] for each in finding.variables} == {judged_by.name}
        assert "the losses `loss` and `loss_of_judge`," in finding.message


def test_a_softmax_of_small_scores_is_not_saturated(tmp_path: Path) -> None:
    """In an attention over small values, the products lose most of the gradient. That of the weights of the attention
    is not measured, as that would change how the step rounds."""
    values = tf.constant(1e-4 * RANDOM.normal(size=(8, 5, 4)), tf.float32)
    queries, keys, made = (tf.Variable(0.05 * RANDOM.normal(size=(4, 4)), dtype=tf.float32) for _ in range(3))
    last = tf.Variable(RANDOM.normal(size=(20, 1)), dtype=tf.float32)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            given = values @ queries, values @ keys, values @ made
            weights = tf.nn.softmax(tf.matmul(given[0], given[1], transpose_b=True))
            result = tf.reshape(weights @ given[2] + values, [8, 20])
            loss = tf.reduce_mean(tf.square(result @ last - 1.0))
        variables = [queries, keys, made, last]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.1 * gradient)

    step()
    step.flush()
    report = tb_gradflow.open_log(tmp_path).report()

    assert "vanishing" in {each.status for each in report.variables.values()}
    assert not any(each.cause == "saturation_softmax" for each in report.findings)


def test_the_weight_of_a_loss_of_keras_2_is_named(tmp_path: Path) -> None:
    given = tf_keras.Input((4,))
    model = tf_keras.Model(given, [tf_keras.layers.Dense(1, name=name)(given) for name in ("first", "second")])
    model.compile("sgd", "mse", loss_weights=[1.0, 0.0])
    targets = np.ones((8, 1), np.float32)

    model.fit(
        X.numpy(), [targets, targets], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)]
    )
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.variables == ("second/kernel", "second/bias")
    assert "`loss_weights` in `model.compile`" in finding.fix


def test_a_value_that_is_compared_with_itself() -> None:
    towers = [tf.Variable(tf.ones([4, 2]), name=name) for name in ("left", "right")]

    def loss() -> tf.Tensor:
        left, _ = (X @ tower for tower in towers)
        return tf.reduce_mean(tf.sqrt(tf.reduce_sum(tf.square(left - left), 1) + 1e-6))

    findings = {each.variables: each for each in tb_gradflow.explain(loss, variables=towers).findings}

    assert (findings["left",].cause, findings["left",].severity) == ("gradient_cancellation", "error")
    assert "the difference of a value and itself" in findings["left",].message


def test_a_layer_in_a_lambda_with_its_first_values_is_a_warning(tmp_path: Path) -> None:
    """Nothing trains it, and Keras says nothing."""

    def severity(directory: Path, *, is_pretrained: bool) -> list[tuple[str, str]]:
        keras.utils.set_random_seed(0)
        projection = keras.layers.Dense(6, activation="tanh", name="projection")
        projection.build((None, 4))
        if is_pretrained:
            projection.set_weights([np.full((4, 6), 0.3), np.linspace(-1, 1, 6)])
        inputs = keras.Input((4,))
        outputs = keras.layers.Dense(1)(keras.layers.Lambda(lambda x: projection(x) * 2.0)(inputs))
        model = keras.Model(inputs, outputs)
        model.compile("adam", "mse")
        callback = tb_gradflow.GradFlowCallback(directory)
        model.fit(X.numpy(), X.numpy().sum(1), epochs=10, verbose=0, callbacks=[callback])
        return [(each.cause, each.severity) for each in tb_gradflow.open_log(directory).report().findings]

    assert severity(tmp_path / "first", is_pretrained=False) == [("untracked_variable", "warning")]
    assert severity(tmp_path / "pretrained", is_pretrained=True) == [("untracked_variable", "info")]


def test_a_rate_that_became_zero_was_set_by_something(tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: 0.05 * (1 // (1 + epoch)))
    callbacks = [schedule, tb_gradflow.GradFlowCallback(tmp_path)]
    model.fit(X.numpy(), X.numpy().sum(1), epochs=4, verbose=0, callbacks=callbacks)
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "gradient_not_applied"
    assert "Earlier steps had one" in finding.fix


def test_what_a_layer_computes_when_it_is_built_is_moved_with_the_names_it_needs(tmp_path: Path) -> None:
    """https://github.com/tensorflow/tensorflow/issues/37726: `build` appends trained rows to pretrained ones."""

    class Extended(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            fixed = self.add_weight(name="fixed", shape=(5, 3), trainable=False)
            self.new_rows = self.add_weight(name="new_rows", shape=(2, 3))
            self.table = tf.concat([fixed, self.new_rows], axis=0)

        def call(self, ids: Any) -> Any:
            return tf.gather(self.table, ids)

    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,), dtype="int32")
    hidden = keras.layers.Flatten()(Extended()(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile("adam", "mse")
    ids = np.arange(32).reshape(8, 4) % 7
    model.fit(ids, X.numpy()[:, :1], epochs=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "python_snapshot"
    assert "before the step (line " in finding.message
    assert finding.edit is not None
    assert "self.fixed = fixed\n" in finding.edit.after
    assert "tf.gather(tf.concat([self.fixed, self.new_rows], axis=0), ids)" in finding.edit.after


@pytest.mark.parametrize(
    ("lines", "instead"),
    [
        (
            ["MEAN.update_state(tf.square(y - prediction))", "loss = MEAN.result()"],
            "loss = tf.reduce_mean(tf.square(y - prediction))",
        ),
        (["loss = MSE(y, prediction)"], "loss = keras.losses.MeanSquaredError()(y, prediction)\n{}MSE.update_state"),
        (["MEAN.update_state(tf.square(y - prediction), tf.ones([8, 1]))", "loss = MEAN.result()"], None),
    ],
    ids=["result", "called", "weighted"],
)
def test_the_loss_of_the_batch_instead_of_a_metric(lines: list[str], instead: str | None, tmp_path: Path) -> None:
    indentation = " " * 8
    body = f"\n{indentation}".join(["prediction = MODEL(x)", *lines])
    program = tmp_path / "metric_as_loss.py"
    program.write_text(_WITH_METRIC.replace("BODY", body))
    spec = importlib.util.spec_from_file_location("metric_as_loss", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step = tb_gradflow.watch(tmp_path / "log")(module.train_step)
    step(X, tf.reduce_sum(X, 1, keepdims=True))
    step.flush()
    [finding] = tb_gradflow.open_log(tmp_path / "log").report().findings
    assert finding.cause == "variable_assign"
    if instead is None:
        assert finding.edit is None
        return
    assert finding.edit is not None
    assert instead.format(indentation) in finding.edit.after


_WITH_METRIC = """
import keras
import tensorflow as tf

MODEL = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
MEAN = keras.metrics.Mean()
MSE = keras.metrics.MeanSquaredError(name="mse")


def train_step(x, y):
    with tf.GradientTape() as tape:
        BODY
    return tape.gradient(loss, MODEL.trainable_variables)
"""


def test_a_scale_in_a_loss_function_of_compile_belongs_into_the_model(tmp_path: Path) -> None:
    temperature = tf.Variable(1.0, name="temperature")
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("adam", lambda y, scores: tf.nn.softmax_cross_entropy_with_logits(y, scores / temperature))
    labels = np.eye(3, dtype="float32")[np.arange(8) % 3]
    model.fit(X.numpy(), labels, epochs=12, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "untracked_variable"
    assert "`self.temperature = self.add_weight(...)`" in finding.fix
    assert "tape" not in finding.fix


def test_labels_of_another_rank_get_the_shape_of_the_predictions(tmp_path: Path) -> None:
    def squared(y: Any, prediction: Any) -> Any:
        return tf.reduce_mean(tf.square(tf.squeeze(y) - prediction))

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("adam", squared)
    model.fit(X.numpy(), X.numpy().sum(1), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.edit is not None
    assert "tf.reshape(tf.squeeze(y), tf.shape(prediction)) - prediction" in finding.edit.after


def test_a_class_number_that_is_compared_with_all_outputs_is_not_reshaped(tmp_path: Path) -> None:
    def squared(y: Any, prediction: Any) -> Any:
        return tf.reduce_mean(tf.square(y - prediction))

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("adam", squared)
    labels = (np.arange(8) % 3)[:, None].astype("float32")
    model.fit(X.numpy(), labels, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    told = [each for each in tb_gradflow.open_log(tmp_path).report().findings if each.cause == "labels_broadcast"]
    assert [each.edit for each in told] == [None]


def test_what_numpy_adds_to_the_loss_trains_nothing(tmp_path: Path) -> None:
    """A penalty of `get_weights()`, which returns arrays: those of all weights, also of such as are not trained."""

    class Penalised(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.last = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.last(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                error = tf.reduce_mean((self(x) - y) ** 2)
                penalty = sum(np.sum(weight**2) for weight in self.get_weights())
                loss = error + 0.01 * penalty
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    keras.utils.set_random_seed(0)
    model = Penalised()
    model.compile("adam", run_eagerly=True)
    model.fit(X.numpy(), X.numpy()[:, :1], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("python_escape", "warning")
    assert "Added to the loss, it trains nothing." in finding.message
    assert "tf.reduce_sum(weight ** 2) for weight in self.weights" in finding.fix
    assert finding.edit is not None
    assert "tf.reduce_sum(weight ** 2) for weight in self.weights" in finding.edit.after


def test_an_infinite_loss_is_told_where_the_gradient_is_zero(tmp_path: Path) -> None:
    """The magnitude of silence: the gradient of `tf.abs` of a complex zero is zero, whatever arrives."""

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(tf.math.log(tf.abs(tf.signal.rfft(model(x)))) - y))
        return tape.gradient(loss, model.trainable_variables)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, kernel_initializer="zeros")])
    watched = tb_gradflow.watch(tmp_path)(step)
    watched(X, 1.0)
    watched.flush()
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("log_zero", "error")
    assert "The loss is infinite" in finding.message


def test_a_query_whose_gradient_is_next_to_nothing_at_first_does_not_discard_an_edit() -> None:
    """An additive attention whose softmax has one entry; with the edit, the query nearly cancels at first."""
    of_query, of_values, scored, last = (keras.layers.Dense(units, use_bias=False) for units in (4, 4, 1, 1))
    values, query = tf.constant(1e-2 * RANDOM.normal(size=(8, 5, 4)), tf.float32), 1e-2 * X

    def loss() -> tf.Tensor:
        score = scored(tf.tanh(of_query(query)[:, None] + of_values(values)))
        weights = tf.nn.softmax(score)
        return tf.reduce_mean(tf.square(last(tf.reduce_sum(weights * values, 1)) - 1.0))

    loss()
    variables = [layer.kernel for layer in (of_query, of_values, scored, last)]
    [finding] = loud(tb_gradflow.explain(loss, variables=variables, try_fixes=True))

    assert finding.cause == "softmax_single_class"
    assert finding.edit is not None
    assert "tf.nn.softmax(score, axis=1)" in finding.edit.after


def test_edits_are_tried_in_a_step_that_reads_what_it_has_written() -> None:
    """The state of a generator, by the second call of the layer that has it."""

    class Stops(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.noise = keras.layers.GaussianNoise(0.1, seed=3)
            self.body, self.head = keras.layers.Dense(3), keras.layers.Dense(1)

        def call(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
            noisy = self.noise(x, training=training) + self.noise(x, training=training)
            return self.head(tf.stop_gradient(self.body(noisy)))

    model = Stops()
    model.compile("sgd", "mse")
    model(X)

    [finding] = loud(tb_gradflow.explain(model, X, tf.ones((8, 1)), try_fixes=True))

    assert finding.cause == "stop_gradient_misuse"
    assert finding.tried is not None
    assert finding.tried.works


@pytest.mark.parametrize("method", ["gradient", "batch_jacobian"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_one_column_of_a_slope_has_a_second_derivative_too(method: str, activation: str) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation), keras.layers.Dense(1)])

    def loss(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                u = model(x)
            slope = getattr(first, method)(u, x)[..., 1]
        bend = getattr(second, method)(slope, x)
        return tf.reduce_mean(tf.square(slope)) + tf.reduce_mean(tf.square(bend)) + tf.reduce_mean(tf.square(u))

    report = tb_gradflow.explain(loss, args=(X,), variables=model.trainable_variables)

    if activation == "tanh":
        assert report.healthy
        return
    [finding] = loud(report)
    assert finding.cause == "second_order_missing"
    assert finding.message.startswith("The second derivative with respect to `x` is exactly zero")


def test_an_environment_of_numpy_that_is_given_the_action_is_no_path_of_the_gradient() -> None:
    actor, critic = (keras.Sequential([keras.Input((4,)), keras.layers.Dense(units)]) for units in (2, 1))

    def loss() -> tf.Tensor:
        logits = actor(X)
        action = tf.random.categorical(logits, 1)[:, 0]
        following = tf.numpy_function(
            lambda taken: (X.numpy() + taken[:, None]).astype(np.float32), [action], tf.float32
        )
        advantage = 1.0 + 0.9 * critic(tf.ensure_shape(following, (8, 4))) - critic(X)
        chosen = tf.gather(tf.nn.log_softmax(logits), action, batch_dims=1)
        return -tf.reduce_mean(chosen * tf.stop_gradient(advantage[:, 0])) + tf.reduce_mean(tf.square(advantage))

    report = tb_gradflow.explain(loss, variables=[*actor.trainable_variables, *critic.trainable_variables])

    assert report.healthy
    assert not any(each.cause == "python_escape" for each in report.findings)


class Tower:
    """Holds layers, but is none."""

    def __init__(self) -> None:
        self.hidden = [keras.layers.Dense(3, activation="tanh") for _ in range(2)]

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        for layer in self.hidden:
            x = layer(x)
        return x


class HoldsTower(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.towers = [Tower()]
        self.last = keras.layers.Dense(1)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.last(self.towers[0](x))


def test_layers_of_a_plain_object_are_not_created_anew(tmp_path: Path) -> None:
    model = HoldsTower()
    model.compile("sgd", "mse")

    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)
    model.fit(X.numpy(), np.ones((8, 1), np.float32), verbose=0, callbacks=[recorder])
    report = tb_gradflow.open_log(tmp_path).report()
    [finding] = loud(report)

    assert (finding.cause, finding.severity) == ("untracked_variable", "error")
    assert "anew" not in finding.message + report.diagnosis.summary
    assert "`Tower` is neither" in finding.message
    assert "class Tower(keras.layers.Layer)" in finding.fix


def test_a_product_with_what_was_normalised_over_one_row_is_no_vector_of_one_element() -> None:
    given = keras.Input((4,))
    made = keras.layers.BatchNormalization()(keras.layers.Dense(3)(given))
    score = keras.layers.Dense(1, use_bias=False)(given)
    model = keras.Model(given, keras.layers.Dense(1)(keras.layers.multiply([score, made])))
    model.compile("sgd", "mse")

    findings = loud(tb_gradflow.explain(model, X[:1], tf.ones((1, 1))))

    assert findings
    assert not any("its own norm" in each.message for each in findings)


def test_what_the_optimizer_raises_is_told(tmp_path: Path) -> None:
    models = [keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]) for _ in range(2)]
    optimizer = keras.optimizers.Adam()
    optimizer.build(models[0].trainable_variables)

    @tb_gradflow.watch(tmp_path)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(models[1](X)))
        gradients = tape.gradient(loss, models[1].trainable_variables)
        optimizer.apply_gradients(zip(gradients, models[1].trainable_variables, strict=True))

    with pytest.raises(ValueError, match="Unknown variable"):
        step()
    step.flush()
    [finding] = loud(tb_gradflow.open_log(tmp_path).report())

    assert finding.cause == "not_measured"
    assert "the step raises ValueError: Unknown variable: " in finding.message
    assert "train_on_batch" not in finding.fix


@pytest.mark.parametrize("function", ["cumsum", "reduce_sum"])
def test_the_logarithm_of_a_sum_of_exponentials_is_written_in_log_space(function: str) -> None:
    rate = tf.Variable([[100.0]], name="rate")
    given = tf.constant([[-2.0], [-3.0]])

    def of_cumulated() -> tf.Tensor:
        risk = (given @ rate)[:, 0]
        return tf.reduce_mean(tf.math.log(tf.cumsum(tf.exp(risk))))

    def of_sum() -> tf.Tensor:
        risk = given @ rate
        return tf.reduce_mean(tf.math.log(tf.reduce_sum(tf.exp(risk), axis=1)))

    loss = of_cumulated if function == "cumsum" else of_sum
    finding = loud(tb_gradflow.explain(loss, variables=[rate], try_fixes=True))[0]

    assert finding.cause == "log_zero"
    assert finding.edit is not None
    wanted = "tf.math.cumulative_logsumexp(risk)" if function == "cumsum" else "tf.reduce_logsumexp(risk, axis=1)"
    assert wanted in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works


def test_a_deviation_that_a_relu_makes_zero_is_followed_to_it_through_a_factor() -> None:
    deviations = keras.layers.Dense(3, activation="relu")
    deviations(X)

    def loss() -> tf.Tensor:
        sigma = deviations(X)
        density = tf.exp(-0.5 * tf.square(1.0 / sigma)) / (sigma * 2.5)
        return tf.reduce_mean(density)

    finding = loud(tb_gradflow.explain(loss, variables=deviations.trainable_variables))[0]

    assert finding.cause == "zero_over_zero"
    assert "Its input comes from `Relu` (in layer " in finding.message
    assert finding.fix.startswith('Make the divisor positive: use `activation="softplus"`')


@pytest.mark.parametrize("divides", [True, False])
def test_a_mixture_whose_densities_underflow_is_summed_in_log_space(divides: bool) -> None:
    """With a lower bound, the logarithm of zeros would be finite, and have no gradient."""
    made = tf.Variable(0.1 * RANDOM.normal(size=(4, 9)), dtype=tf.float32, name="made")

    def quotient() -> tf.Tensor:
        weights, means, scales = tf.split(X @ made, 3, axis=-1)
        weights = tf.nn.softmax(weights)
        scale = tf.exp(scales)
        density = tf.exp(-0.5 * tf.square((50.0 - means) / scale)) / (scale * 2.5066)
        return -tf.reduce_mean(tf.math.log(tf.reduce_sum(weights * density, axis=-1)))

    def product() -> tf.Tensor:
        scores, means, _ = tf.split(X @ made, 3, axis=-1)
        likelihood = tf.reduce_sum(tf.nn.softmax(scores) * tf.exp(-tf.square(50.0 - means)), axis=-1)
        return -tf.reduce_mean(tf.math.log(likelihood))

    [finding] = loud(tb_gradflow.explain(quotient if divides else product, variables=[made], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("log_zero", True)
    assert finding.edit is not None
    assert "tf.reduce_logsumexp(" in finding.edit.after
    assert "scale * 2.5066" not in finding.edit.after


def test_no_bound_is_offered_that_would_leave_no_gradient() -> None:
    scores = tf.Variable(10_000.0 * RANDOM.normal(size=(8, 4)), dtype=tf.float32, name="scores")
    width = tf.Variable(tf.zeros([4]), name="width")
    of_class = tf.one_hot([0, 1, 2, 3, 0, 1, 2, 3], 4)
    predict = keras.Sequential([keras.Input((4,)), keras.layers.Softmax()])

    def cross_entropy() -> tf.Tensor:
        return -tf.reduce_sum(of_class * tf.math.log(predict(scores)))

    def length() -> tf.Tensor:
        return tf.reduce_sum(tf.sqrt(tf.square(width)))

    def distance() -> tf.Tensor:
        return tf.reduce_sum(tf.sqrt(tf.cosh(100.0 + width)))

    findings = [
        loud(tb_gradflow.explain(loss, variables=[variable]))[0]
        for loss, variable in ((cross_entropy, scores), (length, width), (distance, width))
    ]

    assert [each.cause for each in findings] == ["log_zero", "sqrt_at_zero", "exp_overflow"]
    assert [each.edit for each in findings] == [None, None, None]


def test_the_logarithm_of_a_hyperbolic_cosine_is_written_in_its_stable_form() -> None:
    width = tf.Variable(tf.zeros([4]), name="width")

    def loss() -> tf.Tensor:
        return tf.reduce_sum(tf.math.log(tf.cosh(100.0 + width)))

    [finding] = loud(tb_gradflow.explain(loss, variables=[width], try_fixes=True))

    assert finding.edit is not None
    assert "error = 100.0 + width" in finding.edit.after
    assert "tf.reduce_sum(error + tf.math.softplus(-2.0 * error) - 0.693147)" in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works


def test_a_bound_is_offered_where_another_term_trains_what_it_leaves_out() -> None:
    """As in a group lasso whose weights start at zero."""
    weight = tf.Variable(tf.zeros([4, 3]), name="weight")

    def loss() -> tf.Tensor:
        lengths = tf.sqrt(tf.reduce_sum(tf.square(weight), axis=1))
        return tf.reduce_mean(tf.square(X @ weight - 1.0)) + 0.1 * tf.reduce_sum(lengths)

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("sqrt_at_zero", True)


def test_the_penalty_of_a_slope_behind_a_resized_image() -> None:
    """TensorFlow cannot differentiate the gradient of a bicubic resize; a product with two matrices is the same."""
    kernel = tf.Variable(RANDOM.normal(size=(3, 3, 1, 2)), dtype=tf.float32, name="kernel")
    images = tf.constant(RANDOM.normal(size=(2, 5, 4, 1)), tf.float32)

    def loss() -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(images)
            large = tf.image.resize(images, [9, 7], method="bicubic")
            score = tf.reduce_sum(tf.tanh(tf.nn.conv2d(large, kernel, 1, "VALID")))
        return tf.reduce_sum(tf.square(tape.gradient(score, images)))

    [finding] = loud(tb_gradflow.explain(loss, variables=[kernel], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("second_order_missing", True)


def test_a_term_that_is_computed_and_not_added_is_added_where_the_loss_is_made() -> None:
    inputs = keras.Input((4,))
    model = keras.Model(inputs, [keras.layers.Dense(4, name=name)(inputs) for name in ("mean", "spread")])

    def returned() -> tf.Tensor:
        mean, spread = model(X)
        kl = -0.5 * tf.reduce_mean(1.0 + spread - tf.exp(spread))
        fit = tf.reduce_mean(tf.square(mean - X))
        assert kl.shape == ()
        return fit

    [finding] = loud(tb_gradflow.explain(returned, variables=model.trainable_variables, try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("output_not_used", True)
    assert finding.edit is not None
    assert finding.edit.after.strip() == "return fit + kl"


class Decoder(keras.Model):
    """A decoder of which a head is called with what it should not read."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.skipping = keras.layers.Dense(4, name="skipping")
        self.rising = keras.layers.Dense(units, name="rising")
        self.head = keras.layers.Dense(1, name="head")

    def call(self, given: tf.Tensor) -> tf.Tensor:
        skip = self.skipping(given)
        up = self.rising(skip)
        result = self.head(skip)
        del up
        return result


@pytest.mark.parametrize(("units", "written"), [(4, "result = self.head(up)"), (3, None)])
def test_a_value_that_nothing_reads_is_read_in_the_place_of_its_input(units: int, written: str | None) -> None:
    """Of another shape, it may be a second head."""
    model = Decoder(units)
    model(X)

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(model(X) - 1.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=model.trainable_variables, try_fixes=True))

    assert finding.cause == "output_not_used"
    assert (finding.edit.after.strip() if finding.edit is not None else None) == written


def test_a_loss_that_was_computed_before_the_step() -> None:
    """As in `optimizer.minimize(lambda: cost, [rates])`: the step computes nothing."""
    rates = tf.Variable([1.0, 2.0, 3.0], name="rates")
    cost = tf.reduce_mean(rates - 3.0 * tf.math.log(rates))

    def loss() -> tf.Tensor:
        return cost

    [finding] = loud(tb_gradflow.explain(loss, variables=[rates]))

    assert (finding.cause, finding.severity, finding.variables) == ("python_snapshot", "error", ("rates",))
    assert "the step uses `cost`" in finding.message
    assert finding.edit is not None
    assert finding.edit.after.strip() == "return tf.reduce_mean(rates - 3.0 * tf.math.log(rates))"


class TwoPhases(keras.Model):
    """A model with a head for each of two phases."""

    def __init__(self, condition: str) -> None:
        super().__init__()
        self.encoder = keras.layers.Dense(4, name="encoder")
        self.views = keras.layers.Dense(3, name="views")
        self.classes = keras.layers.Dense(2, name="classes")
        self.views.build((None, 4))
        self.condition = condition

    def call(self, given: tf.Tensor, training: bool = False) -> tf.Tensor:
        encoded = self.encoder(given)
        if self.condition == "pretraining":
            return self.views(encoded)
        return self.classes(encoded)


class OnlyInTraining(TwoPhases):
    """A model whose other head is for training."""

    def call(self, given: tf.Tensor, training: bool = False) -> tf.Tensor:
        encoded = self.encoder(given)
        if training:
            return self.views(encoded)
        return self.classes(encoded)


@pytest.mark.parametrize(("of_class", "severity"), [(TwoPhases, "info"), (OnlyInTraining, "error")])
def test_a_head_in_a_branch_that_the_step_does_not_run(of_class: type[TwoPhases], severity: str) -> None:
    """Which phase it is, the program decides; that a step trains and does not say so is a mistake."""
    model = of_class("fine-tuning")
    model(X)

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(model(X)))

    [finding] = tb_gradflow.explain(loss, variables=model.trainable_variables).findings

    assert (finding.severity, finding.variables) == (severity, (model.views.kernel.path, model.views.bias.path))
    assert ("only where its code tests `self.condition ==" in finding.message) == (severity == "info")


def test_the_row_and_the_column_of_the_largest_pixel() -> None:
    """As in a loss of key points: only the quotient and the remainder of the index are used."""
    kernel = tf.Variable(RANDOM.normal(size=(4, 12)), dtype=tf.float32, name="kernel")

    def loss() -> tf.Tensor:
        heat = X @ kernel
        best = tf.argmax(heat, axis=-1)
        row, column = best // 4, best % 4
        return tf.reduce_mean(tf.square(tf.cast(tf.stack([row, column], -1), tf.float32) - 1.5))

    [finding] = loud(tb_gradflow.explain(loss, variables=[kernel], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("nondiff_index", True)
    assert finding.edit is not None
    assert "best" not in finding.edit.after


def test_a_model_is_not_called_twice_by_the_advice_to_draw_a_relaxed_sample() -> None:
    policy = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    rewards = tf.constant([[0.1, 0.5, 0.2]])

    def loss() -> tf.Tensor:
        action = tf.random.categorical(policy(X, training=True), 1)
        return tf.reduce_mean(tf.gather(rewards, action[:, 0], axis=1))

    [finding] = loud(tb_gradflow.explain(loss, variables=policy.trainable_variables))

    assert finding.cause == "nondiff_sampling"
    assert "`scores = policy(X, training=True)`: `u = tf.random.uniform(tf.shape(scores)," in finding.fix
    assert finding.fix.count("policy(") == 1


def test_a_line_that_only_stops_the_gradient_is_removed() -> None:
    weight = tf.Variable(0.5, name="weight")

    def loss() -> tf.Tensor:
        made = tf.tanh(weight)
        made = tf.stop_gradient(made)
        return made * made

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("stop_gradient_misuse", True)
    assert finding.edit is not None
    assert "stop_gradient" in finding.edit.before
    assert "made = made" not in finding.edit.after


def test_one_step_for_each_row_is_not_compared_with_all_rows(tmp_path: Path) -> None:
    """A recurrent layer that returns a sequence of one step, and targets without an axis of time."""

    def squared(y: Any, prediction: Any) -> Any:
        return tf.reduce_mean(tf.square(y - prediction))

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.RepeatVector(1), keras.layers.Dense(3)])
    model.compile("adam", squared)
    model.fit(X.numpy(), X.numpy()[:, :3], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == "labels_broadcast"
    assert "[batch, 1, 3] and the other has shape [batch, 3]" in finding.message
    assert finding.edit is not None
    assert "tf.reshape(y, tf.shape(prediction)) - prediction" in finding.edit.after


@pytest.mark.parametrize("form", ["its dtype", "cast around", "rounded length", "cast under its name"])
def test_a_mask_of_any_floating_dtype_has_an_edit(form: str, tmp_path: Path) -> None:
    class Cut(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.length = self.add_weight(name="length", shape=(), initializer="ones")

        def call(self, x: Any) -> Any:
            if form == "its dtype":
                mask = tf.sequence_mask(self.length, maxlen=4, dtype=x.dtype)
            elif form == "rounded length":
                mask = tf.sequence_mask(tf.cast(tf.round(self.length), tf.int32), 4, dtype=x.dtype)
            else:
                mask = tf.cast(tf.sequence_mask(self.length, 4), x.dtype)
            return x * mask

    class Above(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.limit = self.add_weight(name="limit", shape=(), initializer="zeros")

        def call(self, x: Any) -> Any:
            keep = x > self.limit
            keep = tf.cast(keep, x.dtype)
            return x * keep

    layer = Above() if form == "cast under its name" else Cut()
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(X.numpy(), X.numpy().sum(1), verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.cause == ("nondiff_rounding" if form == "rounded length" else "nondiff_comparison")
    assert finding.edit is not None
    assert "tf.sigmoid((" in finding.edit.after


def test_an_edit_may_leave_what_is_in_front_of_a_zero_layer_without_a_gradient_at_first() -> None:
    """The norm of a difference that is zero, where the last layer and some targets are."""
    keras.utils.set_random_seed(0)
    inputs, targets = X.numpy(), np.maximum(X.numpy()[:, :2], 0)
    last = keras.layers.Dense(2, kernel_initializer="zeros")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), last])

    def distance(y: Any, prediction: Any) -> Any:
        return tf.norm(prediction - y, axis=-1)

    def loss() -> Any:
        return tf.reduce_mean(distance(tf.constant(targets), model(inputs)))

    [finding] = loud(tb_gradflow.explain(loss, variables=model.trainable_variables, try_fixes=True))

    assert finding.cause == "sqrt_at_zero"
    assert finding.edit is not None
    assert finding.tried is not None
    assert finding.tried.works
    assert "tf.maximum(" in finding.edit.after
    assert {each.variable for each in finding.tried.gradient_norm} == {each.path for each in last.trainable_variables}


def test_the_activation_of_the_layer_that_is_named_is_changed(tmp_path: Path) -> None:
    """Not that of another layer whose variables get no gradient either; it may be given without its name."""
    keras.utils.set_random_seed(0)
    low = keras.initializers.Constant(-100.0)
    first = keras.layers.Dense(8, activation="relu", name="before_the_dead_one")
    dead = keras.layers.Dense(8, "relu", bias_initializer=low, name="the_dead_one")
    model = keras.Sequential([keras.Input((4,)), first, dead, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(X.numpy(), X.numpy()[:, 0], verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])
    finding = tb_gradflow.open_log(tmp_path).report().findings[0]
    assert finding.edit is not None
    assert finding.edit.after.strip() == (
        'dead = keras.layers.Dense(8, "leaky_relu", bias_initializer=low, name="the_dead_one")'
    )


@pytest.mark.parametrize("quantised", [True, False])
def test_a_choice_that_keeps_a_term_from_an_encoder_is_information(quantised: bool) -> None:
    """A code without a straight-through estimator leaves its encoder to the commitment alone. The score of an action
    is meant to."""
    weight = tf.Variable(tf.constant(RANDOM.normal(size=(4, 3)), tf.float32), name="encoder")
    codes = tf.Variable(tf.constant(RANDOM.normal(size=(3, 3)), tf.float32), name="codes")
    returns = tf.constant([0.3, -1.0, 2.0])

    def of_codes() -> Any:
        z = X @ weight
        chosen = tf.argmin(tf.reduce_sum(tf.square(z[:, None] - codes), -1), -1)
        code = tf.gather(codes, chosen)
        decoded = tf.reduce_mean(tf.square(code - X[:, :3]))
        return decoded + tf.reduce_mean(tf.square(tf.stop_gradient(code) - z))

    def of_actions() -> Any:
        logits = X @ weight
        action = tf.random.stateless_categorical(logits, 1, [1, 2])[:, 0]
        advantage = tf.gather(returns, action) - tf.reduce_mean(codes)
        score = tf.gather(tf.nn.log_softmax(logits), action, batch_dims=1)
        return tf.reduce_mean(tf.square(advantage)) - tf.reduce_mean(tf.stop_gradient(advantage) * score)

    report = tb_gradflow.explain(of_codes if quantised else of_actions, variables=[weight, codes])

    assert report.healthy
    found = [(each.cause, each.severity) for each in report.findings if "encoder" in each.variables]
    assert found == ([("nondiff_index", "info")] if quantised else [])


def test_an_image_that_is_resized_by_area_is_resized_by_products() -> None:
    weight, size = tf.Variable(1.5, name="weight"), (2, 3)
    picture = tf.random.stateless_uniform([2, 4, 6, 1], (1, 2))

    def loss() -> tf.Tensor:
        small = tf.image.resize(weight * picture, size, method="area")
        return tf.reduce_sum(small**2)

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("no_gradient_registered", True)


def test_the_softmax_of_one_unit_may_be_read_from_a_configuration() -> None:
    config = {"units": 1, "activation": "softmax"}
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(config["units"], activation=config["activation"], name="risk_of_configuration"),
        ]
    )
    model.compile("adam", "mse")

    [finding] = loud(tb_gradflow.explain(model, X.numpy(), X.numpy()[:, :1]))

    assert finding.cause == "softmax_single_class"
    assert finding.edit is not None
    assert 'activation="sigmoid"' in finding.edit.after


def _table(shape: list[int], name: str) -> tf.Variable:
    return tf.Variable(tf.zeros(shape), name=name)


@pytest.mark.parametrize("form", ["loop", "function", "function outside"])
def test_factors_of_zeros_that_one_call_creates(form: str) -> None:
    if form == "loop":
        tables = {
            name: tf.Variable(tf.zeros(shape), name=name) for name, shape in (("users", [4, 3]), ("items", [5, 3]))
        }
    elif form == "function outside":
        tables = {"users": _table([4, 3], "first_factor"), "items": _table([5, 3], name="second_factor")}
    else:

        def table(shape: list[int], name: str) -> tf.Variable:
            return tf.Variable(tf.zeros(shape), name=name)

        tables = {"users": table([4, 3], "row_factor"), "items": table([5, 3], name="column_factor")}

    def loss() -> tf.Tensor:
        return tf.reduce_mean((tf.matmul(tables["users"], tables["items"], transpose_b=True) - 1.0) ** 2)

    [finding] = loud(tb_gradflow.explain(loss, variables=[*tables.values()]))

    assert finding.cause == "zero_init_product"
    assert finding.edit is not None
    assert "tf.Variable(tf.random.normal(shape, stddev=0.02), name=name)" in finding.edit.after


def test_a_factor_of_zeros_that_is_created_with_a_bias_stays() -> None:
    """The call creates a variable that is no factor, too."""
    made = {
        name: tf.Variable(tf.zeros(shape), name=name)
        for name, shape in (("left", [4, 3]), ("right", [5, 3]), ("shift", []))
    }

    def loss() -> tf.Tensor:
        product = tf.matmul(made["left"], made["right"], transpose_b=True)
        return tf.reduce_mean((product + made["shift"] - 1.0) ** 2)

    [finding] = loud(tb_gradflow.explain(loss, variables=[*made.values()]))

    assert (finding.cause, finding.edit) == ("zero_init_product", None)


@pytest.mark.parametrize("cause", ["nondiff_counting", "nondiff_index"])
def test_an_accuracy_whose_choices_have_names(cause: str) -> None:
    layer = keras.layers.Dense(3, name="classes")
    layer.build((None, 4))
    labels = tf.one_hot([0, 2, 1, 0, 2, 1, 0, 2], 3)
    x = X[:8]

    def loss() -> tf.Tensor:
        scores = layer(x)
        best = tf.argmax(scores, axis=-1)
        wanted = tf.argmax(labels, axis=-1)
        hits = tf.cast(tf.equal(best, wanted), tf.float32)
        return 1.0 - tf.reduce_mean(hits) if cause == "nondiff_counting" else tf.reduce_mean(1.0 - hits)

    [finding] = loud(tb_gradflow.explain(loss, variables=layer.trainable_variables, try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == (cause, True)
    assert finding.edit is not None
    assert "tf.nn.softmax(scores, axis=-1) * tf.cast(labels, scores.dtype)" in finding.edit.after


def _tip(angles: Any) -> Any:
    first, second = np.asarray(angles)
    return np.array([np.cos(first) + np.cos(first + second), np.sin(first + second)], dtype="float32")


@pytest.mark.parametrize("form", ["argument", "name"])
def test_a_function_that_uses_numpy_is_translated_beside_the_line_that_calls_it(form: str) -> None:
    joints = tf.Variable([0.3, 0.9], name="joints")

    def of_argument() -> tf.Tensor:
        tip = _tip(joints.numpy())
        return tf.reduce_sum((tf.convert_to_tensor(tip) - 1.0) ** 2)

    def of_name() -> tf.Tensor:
        angles = joints.numpy()
        tip = _tip(angles)
        return tf.reduce_sum((tf.constant(tip) - 1.0) ** 2)

    loss = of_argument if form == "argument" else of_name
    [finding] = loud(tb_gradflow.explain(loss, variables=[joints], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("python_escape", True)
    assert finding.edit is not None
    assert "def _tip_in_tensorflow(angles: Any):" in finding.edit.after


def test_several_draws_of_one_distribution_are_relaxed_separately() -> None:
    policy = tf.Variable([[0.1, -0.2, 0.4, 0.0]], name="policy")
    values = tf.constant([1.0, 2.0, 0.5, 1.5])

    def loss() -> tf.Tensor:
        drawn = tf.random.categorical(policy, 16)
        chosen = tf.one_hot(tf.squeeze(drawn, 0), 4)
        return -tf.reduce_mean(tf.linalg.matvec(chosen, values))

    [finding] = loud(tb_gradflow.explain(loss, variables=[policy], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("nondiff_sampling", True)
    assert finding.edit is not None
    assert "tf.random.uniform([16, tf.shape(policy)[-1]], 1e-6, 1.0 - 1e-6)" in finding.edit.after


def test_a_cross_entropy_that_is_written_out_is_that_of_keras_behind_a_softmax() -> None:
    """The probabilities of a flat softmax have no gradient to bound; Keras goes back to the logits."""

    def by_hand(y: Any, p: Any) -> Any:
        return tf.reduce_mean(-tf.reduce_sum(y * tf.math.log(p), axis=-1))

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", by_hand)
    x, y = 1000.0 * X.numpy(), np.eye(3, dtype="float32")[np.arange(len(X)) % 3]

    [finding] = loud(tb_gradflow.explain(model, x, y, try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("log_zero", True)
    assert finding.edit is not None
    assert "tf.reduce_mean(keras.losses.categorical_crossentropy(y, p))" in finding.edit.after


def test_no_bound_for_the_entropy_of_a_softmax_that_is_flat() -> None:
    """Another term leads to the loss through the same softmax, and has no gradient either."""
    layer = keras.layers.Dense(3, activation="softmax")
    layer.build((None, 4))

    def loss() -> tf.Tensor:
        p = layer(1000.0 * X)
        return tf.reduce_mean(p[:, 0]) + tf.reduce_mean(tf.reduce_sum(p * tf.math.log(p), axis=-1))

    [finding] = loud(tb_gradflow.explain(loss, variables=layer.trainable_variables))

    assert (finding.cause, finding.edit) == ("log_zero", None)


@pytest.mark.parametrize("form", ["one minus", "two minus", "named", "weighted"])
def test_a_binary_cross_entropy_that_is_written_out_is_that_of_keras_behind_a_sigmoid(form: str) -> None:
    def one_minus(y: Any, p: Any) -> Any:
        return -tf.reduce_mean(y * tf.math.log(p) + (1.0 - y) * tf.math.log(1.0 - p))

    def two_minus(y: Any, p: Any) -> Any:
        return tf.reduce_mean(-y * tf.math.log(p) - (1 - y) * tf.math.log(1 - p))

    def named(y: Any, p: Any) -> Any:
        positive = y * tf.math.log(p)
        negative = (1.0 - y) * tf.math.log(1.0 - p)
        return tf.reduce_mean(-positive - negative)

    def weighted(y: Any, p: Any) -> Any:
        return -tf.reduce_mean(2.0 * y * tf.math.log(p) + (1.0 - y) * tf.math.log(1.0 - p))

    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
    losses = {"one minus": one_minus, "two minus": two_minus, "named": named, "weighted": weighted}
    model.compile("sgd", losses[form])
    x, y = 1e4 * X.numpy(), np.arange(len(X), dtype="float32")[:, None] % 2

    [finding] = loud(tb_gradflow.explain(model, x, y, try_fixes=True))

    assert finding.cause == "log_zero"
    written = "keras.losses.binary_crossentropy(y, p)"
    if form == "weighted":
        assert finding.edit is None or written not in finding.edit.after
        return
    assert (finding.tried and finding.tried.works) is True
    assert finding.edit is not None
    assert (
        f"-tf.reduce_mean(-{written})" if form == "one minus" else f"tf.reduce_mean({written})"
    ) in finding.edit.after


def test_the_angle_of_zero_has_an_edit() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    def loss() -> tf.Tensor:
        spectrum = tf.cast(weight, tf.complex64) * tf.constant([0.0, 1.0 + 1.0j], tf.complex64)
        return tf.reduce_sum(tf.math.angle(spectrum) + weight**2)

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("zero_over_zero", True)


def test_what_is_shuffled_is_computed_once() -> None:
    weight = tf.Variable(tf.ones([3, 2]), name="weight")
    x = tf.random.stateless_normal([5, 3], (1, 2))

    def loss() -> tf.Tensor:
        mixed = tf.random.shuffle(tf.tanh(x @ weight), seed=5)
        return tf.reduce_sum(tf.cast(tf.range(5), tf.float32)[:, None] * mixed)

    [finding] = loud(tb_gradflow.explain(loss, variables=[weight], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("nondiff_op", True)
    assert finding.edit is not None
    assert finding.edit.after.count("tanh") == 1


@pytest.mark.parametrize("rank", [1, 2])
def test_a_learned_weight_of_each_row_has_the_shape_of_the_rows(rank: int) -> None:
    layer = keras.layers.Dense(1)
    layer.build((None, 4))
    weights = tf.Variable(tf.ones([8, 1][:rank]), name="weights")

    def loss() -> tf.Tensor:
        residual = layer(X) - X[:, :1]
        residual = weights * residual
        return tf.reduce_mean(tf.square(residual))

    found = loud(tb_gradflow.explain(loss, variables=[weights, *layer.trainable_variables], try_fixes=True))

    assert [each.cause for each in found] == ["labels_broadcast"] * (rank == 1)
    for finding in found:
        assert "weights" in finding.variables
        assert finding.edit is not None
        assert "residual = tf.reshape(weights, tf.shape(residual)) * residual" in finding.edit.after
        assert finding.tried is not None
        assert finding.tried.works


def test_the_axis_of_a_softmax_is_corrected_where_a_helper_is_told_it() -> None:
    """deepctr has a function of its own around `tf.nn.softmax`."""
    query = tf.Variable(tf.ones([4, 1]), name="query")
    rows = tf.constant(RANDOM.normal(size=(8, 5, 4)), tf.float32)

    def softmax(logits: Any, dim: int = -1, name: str | None = None) -> Any:
        return tf.nn.softmax(logits, axis=dim, name=name)

    def loss() -> tf.Tensor:
        weights = softmax(tf.tensordot(rows, query, axes=(-1, 0)), dim=-1)
        return tf.reduce_mean(tf.square(tf.reduce_sum(weights * rows, axis=1)))

    [finding] = loud(tb_gradflow.explain(loss, variables=[query], try_fixes=True))

    assert (finding.cause, finding.tried and finding.tried.works) == ("softmax_single_class", True)
    assert finding.edit is not None
    assert finding.edit.after.strip() == "weights = softmax(tf.tensordot(rows, query, axes=(-1, 0)), dim=1)"


def test_a_softmax_that_computes_other_shapes_too_stays_one() -> None:
    gate, classes = keras.layers.Dense(1), keras.layers.Dense(3)

    def normalised(logits: Any) -> Any:
        return tf.nn.softmax(logits, axis=-1)

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(normalised(gate(X)) * normalised(classes(X)) - X[:, :3]))

    loss()
    variables = [*gate.trainable_variables, *classes.trainable_variables]
    [finding] = loud(tb_gradflow.explain(loss, variables=variables, try_fixes=True))

    assert (finding.cause, finding.edit) == ("softmax_single_class", None)


def test_the_tensor_that_the_tape_watches_is_named_where_another_one_is_asked_for() -> None:
    critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])

    def loss() -> tf.Tensor:
        real = tf.identity(X)
        mixed = 0.5 * real
        with tf.GradientTape() as inner:
            inner.watch(mixed)
            score = critic(mixed)
        slope = inner.gradient(score, real)
        return tf.reduce_mean(tf.square(score)) + (0.0 if slope is None else tf.reduce_mean(tf.square(slope)))

    found = tb_gradflow.explain(loss, variables=critic.trainable_variables, try_fixes=True).findings
    [finding] = [each for each in found if each.cause == "tape_not_watching"]

    assert "What the tape watches there is `mixed`." in finding.message
    assert finding.edit is not None
    assert "inner.gradient(score, mixed)" in finding.edit.after
    assert finding.not_tried == "The step runs with it, and requests the gradient of something else."


@pytest.mark.parametrize("kept", [0.9, 1.0])
def test_a_moving_average_of_gradients_is_no_sum_of_them(kept: float, tmp_path: Path) -> None:
    """The guide to a multilayer perceptron of TensorFlow has its own Adam; here it forgets to assign the update."""
    weight, mean = tf.Variable(tf.ones([4, 1]), name="weight"), tf.Variable(tf.zeros([4, 1]), trainable=False)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(X @ weight))
        mean.assign(kept * mean + 0.1 * tape.gradient(loss, weight))

    for _ in range(3):
        step()
    step.flush()
    found = tb_gradflow.open_log(tmp_path).report().findings

    assert any("for its turn" in each.message for each in found) == (kept == 1.0)


def tried(report: Report, cause: str, after: str) -> Finding:
    """The only loud finding, whose edit works and contains a text."""
    [finding] = loud(report)
    assert (finding.cause, finding.tried and finding.tried.works) == (cause, True)
    assert finding.edit is not None
    assert after in finding.edit.after
    return finding


@pytest.mark.parametrize("starts_at_zero", [True, False])
def test_a_loop_that_overwrites_its_result_adds_up(starts_at_zero: bool) -> None:
    near, far = (tf.Variable([[0.5], [0.1], [-0.2], [0.3]], name=name) for name in ("near", "far"))

    def of_all() -> tf.Tensor:
        total = 0.0
        for weight in (near, far):
            total = tf.reduce_mean(tf.square(X @ weight - 1.0))
        return total * 2.0

    def of_last() -> tf.Tensor:
        error = None
        for weight in (near, far):
            error = tf.reduce_mean(tf.square(X @ weight - 1.0))
        return error

    loss = of_all if starts_at_zero else of_last
    report = tb_gradflow.explain(loss, variables=[near, far], try_fixes=True)

    if starts_at_zero:
        tried(report, "output_not_used", "total += tf.reduce_mean(")
    else:
        assert [each.edit for each in loud(report)] == [None]


def test_a_function_without_a_slope_for_some_arguments_gets_one_by_differences() -> None:
    shape, point = tf.Variable([1.5, 3.0], name="shape"), tf.constant([0.3, 0.6])

    def loss() -> tf.Tensor:
        return tf.reduce_sum(tf.square(tf.math.betainc(tf.exp(shape), 2.0 * shape, point) - 0.4))

    finding = tried(tb_gradflow.explain(loss, variables=[shape], try_fixes=True), "nondiff_op_input", "stop_gradient(")

    def by_difference(step: float) -> float:
        moved = [shape + tf.constant([sign * step, 0.0]) for sign in (1.0, -1.0)]
        values = [tf.math.betainc(tf.exp(each), 2.0 * each, point) for each in moved]
        above, below = (float(tf.reduce_sum(tf.square(each - 0.4))) for each in values)
        return (above - below) / (2.0 * step)

    other = tf.Variable([1.5, 3.0])
    namespace: dict[str, Any] = {"tf": tf, "shape": other, "point": point}
    assert finding.edit is not None
    written = "\n".join(line.strip() for line in finding.edit.after.splitlines()).replace("return ", "value = ")
    with tf.GradientTape() as tape:
        exec(written, namespace)
        value = namespace["value"]
    gradient = tape.gradient(value, other)
    assert gradient is not None
    assert float(gradient[0]) == pytest.approx(by_difference(0.01), rel=0.02)


@pytest.mark.parametrize("least", [2, 4, 5])
@pytest.mark.parametrize("is_limited", [True, False])
def test_a_weighted_count_is_a_sum_over_segments(least: int, is_limited: bool) -> None:
    charge, wire = tf.Variable([0.5, 1.0, 2.0, 0.1], name="charge"), tf.constant([0, 3, 3, 4])

    def counted() -> tf.Tensor:
        return tf.reduce_sum(tf.square(tf.math.bincount(wire, weights=charge, minlength=least) - 1.0))

    def limited() -> tf.Tensor:
        return tf.reduce_sum(tf.square(tf.math.bincount(wire, weights=charge, minlength=least, maxlength=least) - 1.0))

    loss = limited if is_limited else counted
    report = tb_gradflow.explain(loss, variables=[charge], try_fixes=True)

    finding = tried(report, "no_gradient_registered", "tf.math.unsorted_segment_sum(charge, ")
    assert finding.edit is not None
    assert ("tf.where(wire < least, wire, -1)" in finding.edit.after) == is_limited
    assert finding.tried is not None
    assert finding.tried.loss[1] == pytest.approx(float(loss()))


def test_the_share_of_zeros_is_a_count() -> None:
    level = tf.Variable(tf.fill([4], 0.2), name="level")

    def loss() -> tf.Tensor:
        return tf.square(tf.nn.zero_fraction(tf.nn.relu(X - level)) - 0.9)

    tried(tb_gradflow.explain(loss, variables=[level], try_fixes=True), "nondiff_counting", "tf.reduce_mean(tf.exp(-")


@pytest.mark.parametrize("scaled", [True, False])
def test_integer_arithmetic_between_two_casts_of_one_helper_can_be_floating(scaled: bool) -> None:
    """An operand that another line makes an integer would not fit."""
    weight, counts = tf.Variable([0.3, -1.2, 2.0, 0.7], name="weight"), tf.constant([3, 1, 4, 1])

    def to_cents(value: tf.Tensor) -> tf.Tensor:
        return tf.cast(value * 100.0, tf.int32)

    def loss() -> tf.Tensor:
        factor = to_cents(X) if scaled else counts
        return tf.reduce_mean(tf.square(tf.cast(factor * to_cents(weight), tf.float32) / 1e4 - 1.0))

    report = tb_gradflow.explain(loss, variables=[weight], try_fixes=True)

    if scaled:
        tried(report, "integer_dtype", "tf.stop_gradient(tf.cast(tf.cast(")
    else:
        assert [(each.cause, each.edit) for each in loud(report)] == [("integer_dtype", None)]


@pytest.mark.parametrize("last", [3, 4])
def test_elements_that_loops_assign_are_stacked(last: int) -> None:
    """All of them, in their order; if the last row stays as it is, they would not fill the shape."""
    rate = tf.Variable(0.5, name="rate")

    def table() -> tf.Variable:
        cells = tf.Variable(tf.zeros([4, 2]), trainable=False)
        for row in tf.range(0, 4):
            for column in range(2):
                cells[row, column].assign(tf.exp(-rate * X[row, column]))
        return cells

    def rows() -> tf.Variable:
        cells = tf.Variable(tf.zeros([4, 4]), trainable=False)
        for row in range(3):
            cells[row].assign(tf.exp(-rate * X[row]))
        return cells

    filled = table if last == 4 else rows

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(filled() - 0.5))

    report = tb_gradflow.explain(loss, variables=[rate], try_fixes=True)

    if last == 4:
        tried(report, "variable_assign", "cells = tf.reshape(tf.stack(parts), [4, 2])")
    else:
        assert [(each.cause, each.edit) for each in loud(report)] == [("variable_assign", None)]


def test_of_a_ratio_of_a_network_with_itself_the_old_side_is_stopped() -> None:
    actor = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    action, advantage = tf.constant([0, 1, 2, 0, 1, 2, 0, 1]), tf.constant([1.0, -1.0, 0.5, 2.0, -0.3, 0.1, 0.4, -2.0])

    def log_prob(state: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.nn.log_softmax(actor(state)), action, batch_dims=1)

    def loss() -> tf.Tensor:
        return -tf.reduce_mean(tf.exp(log_prob(X) - log_prob(X)) * advantage)

    report = tb_gradflow.explain(loss, variables=actor.trainable_variables, try_fixes=True)

    tried(report, "gradient_cancellation", "log_prob(X) - tf.stop_gradient(log_prob(X))")


def test_where_the_left_side_of_a_difference_is_called_old_that_one_is_stopped() -> None:
    """Of the other side, the gradient would have the wrong sign."""
    actor = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    advantage = tf.constant([1.0, -1.0, 0.5, 2.0, -0.3, 0.1, 0.4, -2.0])

    def loss() -> tf.Tensor:
        log_old, log_new = tf.nn.log_softmax(actor(X))[:, 0], tf.nn.log_softmax(actor(X))[:, 0]
        return -tf.reduce_mean(tf.exp(-(log_old - log_new)) * advantage)

    report = tb_gradflow.explain(loss, variables=actor.trainable_variables, try_fixes=True)

    finding = tried(report, "gradient_cancellation", "tf.stop_gradient(log_old) - log_new")
    assert "`tf.stop_gradient(log_old)`" in finding.fix


def test_zero_factors_that_a_helper_makes_for_a_loop_over_names_and_sizes() -> None:
    def herd(name: str, rows: int) -> tf.Variable:
        return tf.Variable(tf.zeros([rows, 2]), name=name)

    riders, horses = (herd(name, rows) for name, rows in (("riders", 4), ("horses", 5)))

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(X @ riders @ tf.transpose(horses) - 1.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=[riders, horses]))

    assert finding.cause == "zero_init_product"
    assert finding.edit is not None
    assert "tf.random.normal([rows, 2], stddev=0.02)" in finding.edit.after


def test_a_branch_that_is_hidden_everywhere_is_not_made_safe() -> None:
    """Its gradient would be zero: the other branch does not depend on the variable."""
    power = tf.Variable(0.0, name="power")

    def loss() -> tf.Tensor:
        positive = tf.abs(X) + 0.1
        return tf.reduce_mean(tf.where(power == 0.0, tf.math.log(positive), (positive**power - 1.0) / power))

    [finding] = loud(tb_gradflow.explain(loss, variables=[power], try_fixes=True))

    assert (finding.cause, finding.edit) == ("where_inactive_branch", None)
    assert finding.fix.startswith("Start at another value")


class Kept:
    def __init__(self) -> None:
        self.decay = tf.Variable(0.7, name="decay")
        self._weights: tf.Tensor | None = None

    def weights(self) -> tf.Tensor:
        if self._weights is None:
            steps = tf.range(4, dtype=tf.float32)
            self._weights = tf.exp(-self.decay * steps)
        return self._weights


def test_what_only_the_first_call_computes_is_from_before_the_step() -> None:
    kept, scale = Kept(), tf.Variable(1.0, name="scale")
    kept.weights()

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(scale * tf.linalg.matvec(X, kept.weights()) - 1.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=[kept.decay, scale]))

    assert (finding.cause, finding.variables) == ("python_snapshot", ("decay",))
    assert finding.edit is not None
    assert [line.strip() for line in finding.edit.after.splitlines()] == [
        "steps = tf.range(4, dtype=tf.float32)",
        "self._weights = tf.exp(-self.decay * steps)",
    ]


def test_ranks_that_a_helper_returns_are_soft_if_each_caller_casts_them() -> None:
    score = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])

    def ranks(values: tf.Tensor) -> tf.Tensor:
        order = tf.argsort(values)
        return tf.argsort(order)

    def loss() -> tf.Tensor:
        place = tf.cast(ranks(tf.squeeze(score(X), -1)), tf.float32)
        return tf.reduce_mean(tf.square(place - tf.range(8, dtype=tf.float32)))

    report = tb_gradflow.explain(loss, variables=score.trainable_variables, try_fixes=True)

    edits = [each.edit.after for each in loud(report) if each.edit is not None]
    assert any("return tf.reduce_sum(tf.sigmoid(" in after for after in edits)


def test_a_draw_of_keras_random_is_named_and_relaxed() -> None:
    seed = keras.random.SeedGenerator(3)
    gate = tf.Variable(tf.zeros([4, 3]), name="gate")
    values = tf.constant([[1.0], [2.0], [4.0]])

    def loss() -> tf.Tensor:
        logits = keras.ops.matmul(X, gate)
        index = keras.random.categorical(logits, 1, seed=seed)
        chosen = keras.ops.one_hot(keras.ops.squeeze(index, -1), 3)
        return keras.ops.mean(keras.ops.square(keras.ops.matmul(chosen, values)))

    report = tb_gradflow.explain(loss, variables=[gate], try_fixes=True)

    finding = tried(
        report, "nondiff_sampling", "keras.random.uniform(keras.ops.shape(logits), 1e-6, 1.0 - 1e-6, seed=seed)"
    )
    assert "`keras.random.categorical`" in finding.message


@pytest.mark.parametrize("other", [True, False])
def test_the_power_of_zeros_is_bounded_where_another_path_has_a_gradient(other: bool) -> None:
    image = tf.Variable(tf.fill([4, 4], 0.5), name="image")

    def loss() -> tf.Tensor:
        step = image[1:] - image[:-1]
        rough = tf.reduce_sum((step**2) ** 0.5)
        return rough + tf.reduce_sum(tf.square(image - X[:4])) if other else rough

    report = tb_gradflow.explain(loss, variables=[image], try_fixes=True)

    if other:
        tried(report, "pow_fraction_at_zero", "tf.maximum(step**2, 1e-12)")
    else:
        assert [(each.cause, each.edit) for each in loud(report)] == [("pow_fraction_at_zero", None)]


def test_an_entry_of_a_dictionary_is_changed_in_place() -> None:
    weights = {"slope": tf.Variable([[0.5], [0.1], [-0.2], [0.3]], name="slope")}
    [variable] = weights.values()

    def shrink(names: list[str]) -> None:
        for name in names:
            weights[name] = weights[name] * 0.99

    shrink(["slope"])

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(X @ weights["slope"] - 1.0))

    [finding] = loud(tb_gradflow.explain(loss, variables=[variable]))

    assert finding.cause == "variable_rebound"
    assert finding.edit is not None
    assert "weights[name].assign(weights[name] * 0.99)" in finding.edit.after


def test_a_stop_that_is_applied_to_each_part_of_a_structure_is_removed() -> None:
    encoder = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh")])

    def held(parts: Any) -> Any:
        return tf.nest.map_structure(tf.stop_gradient, parts)

    def loss() -> tf.Tensor:
        one, other = held([encoder(X), encoder(X[::-1])])
        return tf.reduce_mean(tf.square(one - other))

    report = tb_gradflow.explain(loss, variables=encoder.trainable_variables, try_fixes=True)

    tried(report, "stop_gradient_misuse", "return parts")
