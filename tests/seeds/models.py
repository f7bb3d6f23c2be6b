"""The seeds' layers, typed in as they stand, each in a small Keras model that is explained and trained."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.initializers import RandomUniform

from tests.seeds.programs import (
    GETS,
    NONE,
    ZERO,
    fourier_round,
    get_log_prob,
    round_with_gradients,
    sine_round,
    soft_round,
    steep_clip,
    steep_exponential,
    steep_sigmoid,
    straight_through,
)

Built = tuple[Any, Any, Any]


@dataclass(frozen=True)
class ModelProgram:
    """A model of a question, and what is true of it.

    Attributes:
        name: The question's number and what the program is.
        build: Makes the model, compiled, and a batch of data for it.
        statuses: Of its variables, in their order.
        causes: Of the findings above information; none for what is right.
        is_fit: Whether it is trained as well.
    """

    name: str
    build: Callable[[], Built]
    statuses: tuple[str, ...]
    causes: tuple[str, ...] = ()
    is_fit: bool = False


def per_kernel_step_filter(input: Any, weight_param_v: Any, *, soft: bool) -> Any:
    input_shape = input.get_shape().as_list()

    weight_param_v_c = tf.clip_by_value(weight_param_v, 0, input_shape[-2])
    if soft:
        kernel_filter = tf.transpose(tf.sigmoid(weight_param_v_c[:, None] - tf.range(input_shape[-2] * 1.0)))
    else:
        kernel_filter = tf.transpose(tf.sequence_mask(weight_param_v_c, input_shape[-2], dtype=tf.float32))
    kernel_filter = tf.reshape(kernel_filter, tf.concat([(1, 1), kernel_filter.get_shape()], 0))

    return input * kernel_filter


class PerKernelStepFilter(keras.layers.Layer):
    def __init__(self, weight_param: float = 20, trainable: bool = True, soft: bool = False) -> None:
        super().__init__(trainable=trainable)
        self.weight_param = weight_param
        self.soft = soft

    def build(self, input_shape: Any) -> None:
        self.weight_param_v = self.add_weight(
            name="weight_param_v",
            shape=(input_shape[-1],),
            initializer=keras.initializers.Constant(self.weight_param),
        )

    def call(self, input: Any) -> Any:
        return per_kernel_step_filter(input, tf.convert_to_tensor(self.weight_param_v), soft=self.soft)


def step_filter_model(weight_param: float, soft: bool = False) -> Built:
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(3, 3, padding="same", name="conv"),
            PerKernelStepFilter(weight_param, soft=soft),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(1, name="head"),
        ]
    )
    model.compile(optimizer="adam", loss="mse")
    rng = np.random.default_rng(0)
    return model, rng.normal(size=(16, 8, 8, 1)).astype("float32"), rng.normal(size=(16, 1)).astype("float32")


def f_True(x: Any) -> Any:
    # Compute Bump Function
    bump_value = 1 - tf.math.pow(x, 2)
    bump_value = -tf.math.pow(bump_value, -1)
    bump_value = tf.math.exp(bump_value)
    return bump_value


def f_False(x: Any) -> Any:
    # Compute Bump Function
    x_out = 0 * x
    return x_out


class trainable_bump_layer(tf.keras.layers.Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def build(self, input_shape: Any) -> None:
        self.threshold_level = self.add_weight(
            name="threshlevel", shape=[1], initializer="GlorotUniform", trainable=True
        )

    def call(self, input: Any) -> Any:
        # Determine Thresholding Logic
        The_Logic = tf.math.less(input, self.threshold_level)
        # Apply Logic
        output_step_3 = tf.cond(The_Logic, lambda: f_True(input), lambda: f_False(input))
        return output_step_3


class trainable_bump_layer_by_where(trainable_bump_layer):
    def call(self, input: Any) -> Any:
        The_Logic = tf.math.less(input, self.threshold_level)
        output_step_3 = tf.where(The_Logic, f_True(input), f_False(input))
        return output_step_3


class normal_bump_layer(tf.keras.layers.Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def build(self, input_shape: Any) -> None:
        # suggested shape (has a different kernel for each input feature/channel)
        shape = tuple(1 for _ in input_shape[:-1]) + input_shape[-1:]

        # for your desired shape of only 1:
        shape = tuple(1 for _ in input_shape)  # all ones

        # height
        self.kernel_a = self.add_weight(name="kernel_a ", shape=shape, initializer="ones", trainable=True)
        # inverse width
        self.kernel_b = self.add_weight(name="kernel_b", shape=shape, initializer="ones", trainable=True)
        # center
        self.kernel_c = self.add_weight(name="kernel_c", shape=shape, initializer="zeros", trainable=True)

    def call(self, input: Any) -> Any:
        exp_arg = -self.kernel_b * keras.ops.square(input - self.kernel_c)
        return self.kernel_a * keras.ops.exp(exp_arg)


def with_bump(layer: type[Any], rows: int = 32) -> Callable[[], Built]:
    """The layer between two that train: without them Keras has no gradient at all to apply, and raises. `tf.cond` takes
    a condition of one element alone: TensorFlow itself refuses more rows than one, as the question's versions did not.
    """

    def build() -> Built:
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [
                keras.Input((3,)),
                keras.layers.Dense(1, activation="tanh", name="before"),
                layer(name="reconfiguration_unit_steps_3_3"),
                keras.layers.Dense(1, name="after"),
            ]
        )
        model.compile(optimizer="adam", loss="mse")
        rng = np.random.default_rng(0)
        return model, rng.normal(size=(rows, 3)).astype("float32"), rng.normal(size=(rows, 1)).astype("float32")

    return build


class BumpLayer(tf.keras.layers.Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def build(self, input_shape: Any) -> None:
        self.sigma = self.add_weight(
            name="sigma",
            shape=[1],
            initializer=RandomUniform(minval=0.0, maxval=0.1),
            trainable=True,
            constraint=tf.keras.constraints.NonNeg(),
        )
        super().build(input_shape)

    def bump_function(self, x: Any) -> Any:
        return tf.math.exp(-self.sigma / (self.sigma - tf.math.pow(x, 2)))

    def call(self, inputs: Any) -> Any:
        greater = tf.math.greater(inputs, -self.sigma)
        less = tf.math.less(inputs, self.sigma)
        condition = tf.logical_and(greater, less)

        output = tf.where(condition, self.bump_function(inputs), 0.0)
        return output


class SafeBumpLayer(BumpLayer):
    def call(self, inputs: Any) -> Any:
        greater = tf.math.greater(inputs, -self.sigma)
        less = tf.math.less(inputs, self.sigma)
        condition = tf.logical_and(greater, less)

        output = tf.where(condition, self.bump_function(tf.where(condition, inputs, 0.0)), 0.0)
        return output


def generate_data(sigma: float, min_x: float = -1, max_x: float = 1, shape: Any = (2000, 1)) -> tuple[Any, Any, Any]:
    assert sigma >= 0, "Sigma should be non-negative!"
    x = np.random.uniform(min_x, max_x, size=shape)
    xp2 = np.power(x, 2)
    condition = np.logical_and(x < sigma, x > -sigma)
    y = np.where(condition, np.exp(-sigma / (sigma - xp2)), 0.0)
    dy = np.where(condition, xp2 * y / np.power((sigma - xp2), 2), 0)
    return x, y, dy


def make_model(layer: type[Any], input_shape: Any = (1,)) -> Any:
    model = tf.keras.Sequential()
    model.add(layer(input_shape=input_shape))
    model.compile(loss="mse", optimizer="adam")
    return model


def bump(layer: type[Any], sigma: float, **span: float) -> Callable[[], Built]:
    def build() -> Built:
        keras.utils.set_random_seed(1)
        x, y, _ = generate_data(sigma=sigma, **span)
        return make_model(layer), x, y

    return build


class Rounding(keras.layers.Layer):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__(name="rounding")
        self.function = function

    def call(self, probabilities: Any) -> Any:
        return self.function(probabilities)


def rounding_model(function: Callable[[Any], Any]) -> Callable[[], Built]:
    def build() -> Built:
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [keras.Input((4,)), keras.layers.Dense(2, "sigmoid", name="probabilities"), Rounding(function)]
        )
        model.compile(optimizer="adam", loss="mse")
        rng = np.random.default_rng(0)
        return model, rng.normal(size=(32, 4)).astype("float32"), rng.integers(0, 2, (32, 2)).astype("float32")

    return build


def log_prob_model(*, stopped: bool) -> Callable[[], Built]:
    def build() -> Built:
        keras.utils.set_random_seed(0)
        importlib.import_module("tensorflow_probability")
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="location")])
        model.compile("sgd", lambda true, mu: -tf.reduce_mean(get_log_prob(tf.squeeze(mu), 0.5, stopped=stopped)))
        rng = np.random.default_rng(0)
        return model, rng.normal(size=(8, 3)).astype("float32"), np.zeros((8, 1), "float32")

    return build


class Masked(keras.layers.Layer):
    """`final_output = output * mask`"""

    def __init__(self) -> None:
        super().__init__(name="final_output")
        self.supports_masking = True

    def call(self, inputs: Any) -> Any:
        output, mask = inputs
        final_output = output * mask
        return final_output


def padded(*middle: Callable[[], Any], multiplied: bool = False) -> Callable[[], Built]:
    """Behind `Masking()` some layers on the sequence, then a value for each step; two rows are shorter."""

    def build() -> Built:
        keras.utils.set_random_seed(0)
        features = keras.Input((10, 3))
        sequence = keras.layers.Masking()(features)
        for layer in middle:
            sequence = layer()(sequence)
        output = keras.layers.Dense(1, name="head")(sequence)
        if multiplied:
            mask = keras.ops.cast(keras.ops.any(features != 0, axis=-1, keepdims=True), "float32")
            output = Masked()([output, mask])
        model = keras.Model(features, output)
        model.compile("adam", "mse")
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(8, 10, 3)).astype("float32"), rng.normal(size=(8, 10, 1)).astype("float32")
        x[-2:, 6:] = 0.0
        if multiplied:
            y[-2:, 6:] = 0.0
        return model, x, y

    return build


def gru() -> Any:
    return keras.layers.GRU(4, return_sequences=True, name="gru")


def conv() -> Any:
    return keras.layers.Conv1D(4, 3, padding="same", name="conv")


def batch_norm() -> Any:
    return keras.layers.BatchNormalization(name="norm")


def relu() -> Any:
    return keras.layers.Dense(4, "relu", name="relu")


_FOUR = (GETS,) * 4
_OF_GRU = (GETS, GETS, GETS, "frozen", GETS, GETS)  # frozen: the state of its dropout

MODELS = (
    ModelProgram(
        "0 per_kernel_step_filter as a layer",
        lambda: step_filter_model(20),
        (GETS, GETS, NONE, GETS, GETS),
        ("nondiff_comparison",),
        is_fit=True,
    ),
    ModelProgram(
        "0 per_kernel_step_filter as a layer, fixed",
        lambda: step_filter_model(4, soft=True),
        (GETS,) * 5,
        is_fit=True,
    ),
    ModelProgram(
        "2 trainable_bump_layer",
        with_bump(trainable_bump_layer, rows=1),
        (GETS, GETS, NONE, GETS, GETS),
        ("predicate_only",),
    ),
    ModelProgram(
        "2 trainable_bump_layer, tf.where",
        with_bump(trainable_bump_layer_by_where),
        (GETS, GETS, NONE, GETS, GETS),
        ("nondiff_comparison",),
    ),
    ModelProgram("2 normal distribution for a bump", with_bump(normal_bump_layer), (GETS,) * 7),
    ModelProgram("2 BumpLayer, numbers near zero", bump(BumpLayer, 0.5, min_x=-0.1, max_x=0.1), (GETS,)),
    ModelProgram("2 BumpLayer", bump(BumpLayer, 0.5), ("nan",), ("where_inactive_branch",), is_fit=True),
    ModelProgram("2 BumpLayer with the inner tf.where", bump(SafeBumpLayer, 0.5), (GETS,), is_fit=True),
    *(
        ModelProgram(f"2 {name} as a layer", rounding_model(function), (status, status), causes)
        for name, function, status, causes in (
            ("round", tf.round, NONE, ("nondiff_rounding",)),
            ("round by a sine", sine_round, GETS, ()),
            ("round by steep limits", steep_clip, ZERO, ("saturation_clip",)),
            ("round, straight through", straight_through, GETS, ()),
            ("round by Fourier's series", fourier_round, GETS, ()),
            ("round with a custom gradient", round_with_gradients, GETS, ()),
            ("round by a steep exponential", steep_exponential, "nan", ("exp_overflow",)),
            ("round by a sigmoid, less steep", steep_sigmoid, GETS, ()),
            ("soft round, alpha 3", lambda x: soft_round(x, 3.0), GETS, ()),
            ("soft round, alpha 7", lambda x: soft_round(x, 7.0), GETS, ()),
            ("soft round, alpha 15", lambda x: soft_round(x, 15.0), GETS, ()),
        )
    ),
    ModelProgram("2 own density of a model", log_prob_model(stopped=False), (ZERO, ZERO), ("gradient_cancellation",)),
    ModelProgram("2 own density of a model, stopped", log_prob_model(stopped=True), (GETS, GETS)),
    ModelProgram("3 Masking and GRU", padded(gru), _OF_GRU),
    ModelProgram("3 Masking, GRU, output * mask", padded(gru, multiplied=True), _OF_GRU),
    ModelProgram("3 Masking and Conv1D", padded(conv), _FOUR, ("mask_dropped",), is_fit=True),
    ModelProgram("3 Masking, Conv1D, output * mask", padded(conv, multiplied=True), _FOUR, is_fit=True),
    ModelProgram("3 Masking and BatchNormalization", padded(batch_norm), (GETS, GETS, "frozen", "frozen", GETS, GETS)),
    ModelProgram("3 Masking and Dense relu", padded(relu), _FOUR),
    ModelProgram(
        "3 Masking, Conv1D, BatchNormalization, Dense relu, GRU",
        padded(conv, batch_norm, relu, gru),
        (GETS, "vanishing", GETS, GETS, "frozen", "frozen", GETS, GETS, *_OF_GRU),
        ("mask_dropped",),
    ),
)
