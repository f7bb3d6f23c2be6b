"""What people request gradients of, and for: one program for each class of sources and targets, in the form they type.

The expectation stands beside each program: the status of each source, and the causes of the findings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

# A function, its arguments, and what its gradient is requested for.
Asked = tuple[Callable[..., Any], tuple[Any, ...], Any]


@dataclass(frozen=True)
class Expected:
    """What the report must say.

    Attributes:
        name: Of the program.
        build: Makes it anew, with its variables and tensors.
        statuses: Of the sources: in the order given for `explain`, in any order for `watch`.
        causes: Of the findings, in any order.
    """

    name: str
    build: Callable[[], Any]
    statuses: tuple[str, ...]
    causes: tuple[str, ...] = ()


def _numbers(*values: float) -> Any:
    return tf.constant(values, tf.float32)


def variable_squared() -> Asked:
    w = tf.Variable([1.0, 2.0], name="w")
    return lambda: tf.reduce_sum(tf.square(w)), (), [w]


def variable_alone() -> Asked:
    """Not in a list."""
    w = tf.Variable(2.0, name="w")
    return lambda: w * w, (), w


def closed_over() -> Asked:
    x = _numbers(1.0, 2.0)
    return lambda: tf.reduce_sum(tf.square(x)), (), [x]


def passed() -> Asked:
    x = _numbers(1.0, 2.0)
    return lambda given: tf.reduce_sum(tf.square(given)), (x,), [x]


def passed_and_closed_over() -> Asked:
    x, w = _numbers(1.0, 2.0), tf.Variable([3.0, 4.0], name="w")
    return lambda given: tf.reduce_sum(given * w + x), (x,), [x, w]


def passed_twice() -> Asked:
    x = _numbers(1.0, 2.0)
    return lambda a, b: tf.reduce_sum(a * tf.stop_gradient(b)), (x, x), [x]


def passed_in_a_dictionary() -> Asked:
    x, y = _numbers(1.0, 2.0), _numbers(0.5, 0.5)
    return lambda batch: tf.reduce_sum(tf.square(batch["x"] - batch["y"])), ({"x": x, "y": y},), [x]


def rounded_tensor() -> Asked:
    x = _numbers(1.2, 2.7)
    return lambda: tf.reduce_sum(tf.round(x)), (), [x]


def rounded_argument() -> Asked:
    x = _numbers(1.2, 2.7)
    return lambda given: tf.reduce_sum(tf.floor(given)), (x,), [x]


def tensor_not_used() -> Asked:
    x, y = _numbers(1.0, 2.0), _numbers(3.0, 4.0)
    return lambda: tf.reduce_sum(tf.square(x)), (), [x, y]


def stopped_tensor() -> Asked:
    x, w = _numbers(1.0, 2.0), tf.Variable([1.0, 1.0], name="w")
    return lambda: tf.reduce_sum(w * tf.stop_gradient(x)), (), [x, w]


def compared_tensor() -> Asked:
    x = _numbers(1.0, 2.0)
    return lambda: tf.reduce_sum(tf.cast(x > 1.5, tf.float32)), (), [x]


def zero_tensor() -> Asked:
    x, w = _numbers(-1.0, -2.0), tf.Variable([1.0, 1.0], name="w")
    return lambda: tf.reduce_sum(w + tf.nn.relu(x)), (), [x, w]


def nan_tensor() -> Asked:
    x = _numbers(0.0, 1.0)
    return lambda: tf.reduce_sum(tf.where(x > 0.5, 1 / x, tf.zeros_like(x))), (), [x]


def double_precision() -> Asked:
    x = tf.constant([1.0, 2.0], tf.float64)
    return lambda: tf.reduce_sum(tf.exp(x)), (), [x]


def half_precision() -> Asked:
    x = tf.constant([1.0, 2.0], tf.float16)
    return lambda: tf.reduce_sum(tf.square(x)), (), [x]


def complex_tensor() -> Asked:
    x = tf.constant([1.0 + 2.0j, 0.5 - 1.0j], tf.complex64)
    return lambda: tf.reduce_sum(tf.square(tf.abs(x))), (), [x]


def integer_tensor() -> Asked:
    table, places = tf.Variable([1.0, 2.0, 3.0], name="table"), tf.constant([0, 2])
    return lambda: tf.reduce_sum(tf.square(tf.gather(table, places))), (), [table, places]


def integer_argument() -> Asked:
    table, places = _numbers(1.0, 2.0, 3.0), tf.constant([0, 2])
    return lambda rows, at: tf.reduce_sum(tf.square(tf.gather(rows, at))), (table, places), [table, places]


def labels() -> Asked:
    logits, wanted = tf.Variable([[0.1, 0.9], [0.3, 0.2]], name="logits"), tf.constant([1, 0])

    def loss() -> Any:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits))

    return loss, (), [logits, wanted]


def integer_cast() -> Asked:
    """A pixel as it is loaded: integers, which the model casts."""
    pixels = tf.constant([10, 200], tf.uint8)
    w = tf.Variable([0.1, 0.1], name="w")
    return lambda: tf.reduce_sum(w * tf.cast(pixels, tf.float32)), (), [w, pixels]


def booleans() -> Asked:
    w, mask = tf.Variable([1.0, 2.0], name="w"), tf.constant([True, False])
    return lambda: tf.reduce_sum(tf.square(tf.boolean_mask(w, mask))), (), [w, mask]


def ragged_tensor() -> Asked:
    rows = tf.RaggedTensor.from_row_lengths(_numbers(1.0, 2.0, 3.0), [2, 1])
    return lambda: tf.reduce_sum(tf.square(rows.flat_values)), (), [rows]


def ragged_argument() -> Asked:
    rows = tf.RaggedTensor.from_row_lengths(_numbers(1.0, 2.0, 3.0), [2, 1])
    return lambda given: tf.reduce_sum(tf.reduce_mean(given, axis=1)), (rows,), [rows]


def sparse_tensor() -> Asked:
    entries = tf.SparseTensor([[0, 0], [1, 1]], _numbers(1.0, 2.0), [2, 2])
    w = tf.Variable([[1.0], [2.0]], name="w")
    return lambda: tf.reduce_sum(tf.sparse.sparse_dense_matmul(entries, w)), (), [entries.values, w]


def nested_lists() -> Asked:
    a, b, c = (tf.Variable(float(value), name=name) for name, value in (("a", 1), ("b", 2), ("c", 3)))
    return lambda: a * b + tf.round(c), (), [[a, b], [c]]


def dictionary() -> Asked:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    return lambda: tf.square(a) + tf.square(b), (), {"first": a, "second": {"inner": b}}


def tuple_of_both() -> Asked:
    w, x = tf.Variable(1.0, name="w"), tf.constant(2.0)
    return lambda: w * x, (), (w, (x,))


def tensor_twice() -> Asked:
    x = _numbers(1.0, 2.0)
    return lambda: tf.reduce_sum(tf.square(x)), (), [x, x]


def target_is_a_variable() -> Asked:
    box, kept = tf.Variable([4.0, 5.0], name="box"), tf.Variable([0.0, 0.0], name="kept", trainable=False)

    def difference() -> Any:
        kept.assign(tf.square(box))
        return kept

    return difference, (), [box]


def target_is_a_sliced_variable() -> Asked:
    box, kept = tf.Variable([4.0, 5.0], name="box"), tf.Variable([0.0, 0.0], name="kept", trainable=False)

    def difference() -> Any:
        for place in range(2):
            kept[place].assign(1.0 / box[place])
        return kept

    return difference, (), [box]


def stored_and_read() -> Asked:
    x, kept = _numbers(1.0, 2.0), tf.Variable([0.0, 0.0], name="kept", trainable=False)

    def loss() -> Any:
        kept.assign(tf.square(x))
        return tf.reduce_sum(kept)

    return loss, (), [x]


def target_is_not_a_scalar() -> Asked:
    x = _numbers(1.0, 2.0)
    return lambda: tf.square(x), (), [x]


def frozen_source() -> Asked:
    w = tf.Variable(2.0, name="w", trainable=False)
    return lambda: w * w, (), [w]


def input_gradient_of_a_layer() -> Asked:
    x = _numbers(0.5, -0.5)[None]
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
    layer.build((1, 2))
    return lambda: tf.reduce_sum(layer(x)), (), [x, layer.kernel]


def derivative_inside() -> Asked:
    """The loss holds a derivative with respect to the source itself."""
    x = _numbers(1.0, 2.0)

    def penalty() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(x**3)
        return tf.reduce_sum(tf.square(tape.gradient(value, x)))

    return penalty, (), [x]


FUNCTIONS = (
    Expected("variable", variable_squared, ("connected",)),
    Expected("variable, not in a list", variable_alone, ("connected",)),
    Expected("tensor in a closure", closed_over, ("connected",)),
    Expected("tensor in args", passed, ("connected",)),
    Expected("tensor in args and in a closure", passed_and_closed_over, ("connected", "connected")),
    Expected("tensor in args twice", passed_twice, ("connected",)),
    Expected("tensor in a dictionary in args", passed_in_a_dictionary, ("connected",)),
    Expected("rounded tensor", rounded_tensor, ("disconnected",), ("nondiff_rounding",)),
    Expected("rounded argument", rounded_argument, ("disconnected",), ("nondiff_rounding",)),
    Expected("tensor that is not used", tensor_not_used, ("connected", "unused"), ("output_not_used",)),
    Expected("stopped tensor", stopped_tensor, ("disconnected", "connected"), ("stop_gradient_misuse",)),
    Expected("compared tensor", compared_tensor, ("disconnected",), ("nondiff_counting",)),
    Expected("tensor behind a flat ReLU", zero_tensor, ("zero", "connected"), ("dead_relu",)),
    Expected("tensor with NaN", nan_tensor, ("nan",), ("where_inactive_branch",)),
    Expected("float64 tensor", double_precision, ("connected",)),
    Expected("float16 tensor", half_precision, ("connected",)),
    Expected("complex tensor", complex_tensor, ("connected",)),
    Expected("integers that index", integer_tensor, ("connected", "integer"), ("integer_dtype",)),
    Expected("integers that index, in args", integer_argument, ("connected", "integer"), ("integer_dtype",)),
    Expected("labels", labels, ("connected", "integer"), ("integer_dtype",)),
    Expected("integers that are cast", integer_cast, ("connected", "integer"), ("integer_dtype",)),
    Expected("booleans", booleans, ("connected", "disconnected"), ("integer_dtype",)),
    Expected("ragged tensor", ragged_tensor, ("connected",)),
    Expected("ragged tensor in args", ragged_argument, ("connected",)),
    Expected("values of a sparse tensor", sparse_tensor, ("connected", "connected")),
    Expected("nested lists", nested_lists, ("connected", "connected", "disconnected"), ("nondiff_rounding",)),
    Expected("nested dictionaries", dictionary, ("connected", "connected")),
    Expected("tuple of a variable and a tensor", tuple_of_both, ("connected", "connected")),
    Expected("tensor listed twice", tensor_twice, ("connected",)),
    Expected("variable as target", target_is_a_variable, ("disconnected",), ("variable_assign",)),
    Expected(
        "variable, slice by slice, as target", target_is_a_sliced_variable, ("disconnected",), ("variable_assign",)
    ),
    Expected("variable that is stored and read", stored_and_read, ("disconnected",), ("variable_assign",)),
    Expected("target that is no scalar", target_is_not_a_scalar, ("connected",)),
    Expected("variable that is not trainable", frozen_source, ("frozen",), ("frozen_by_flag",)),
    Expected("input of a layer", input_gradient_of_a_layer, ("connected", "connected")),
    Expected("derivative inside of the loss", derivative_inside, ("connected",)),
)


Step = Callable[[], Any]


def moved_in_front() -> Step:
    a, delta = _numbers(1.0, 2.0), 0.1

    def step() -> Any:
        with tf.GradientTape() as tape:
            moved = a + delta
            tape.watch(moved)
            loss = tf.reduce_sum(tf.square(moved))
        return tape.gradient(loss, moved)

    return step


def moved_again() -> Step:
    """`tape.gradient(b2, a + delta)`: equal numbers, another tensor."""
    a, delta = tf.Variable([1.0, 2.0], name="a"), 0.1

    def step() -> Any:
        with tf.GradientTape() as tape:
            b2 = tf.reduce_sum(tf.square(a + delta))
        return tape.gradient(b2, a + delta) or ()

    return step


def hidden_activations() -> Step:
    """What Grad-CAM requests: the gradient of a score for activations half way."""
    w, head = tf.Variable([[0.5], [0.2]], name="w"), tf.Variable([[2.0]], name="head")

    def step() -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.matmul(_numbers(1.0, 2.0)[None], w))
            score = tf.reduce_sum(tf.matmul(hidden, head))
        return tape.gradient(score, hidden)

    return step


def saliency() -> Step:
    w = tf.Variable([[0.5], [0.2]], name="w")

    def step() -> Any:
        image = tf.identity(_numbers(1.0, 2.0)[None])
        with tf.GradientTape() as tape:
            tape.watch(image)
            score = tf.reduce_sum(tf.matmul(image, w))
        return tape.gradient(score, image)

    return step


def not_watched() -> Step:
    w = tf.Variable([[0.5], [0.2]], name="w")

    def step() -> Any:
        image = tf.identity(_numbers(1.0, 2.0)[None])
        with tf.GradientTape() as tape:
            score = tf.reduce_sum(tf.matmul(image, w))
        slope = tape.gradient(score, image)
        return () if slope is None else slope

    return step


def jacobian() -> Step:
    w = tf.Variable([1.0, 2.0], name="w")

    def step() -> Any:
        with tf.GradientTape() as tape:
            values = tf.square(w)
        return tape.jacobian(values, w)

    return step


def jacobian_of_rounded() -> Step:
    w = tf.Variable([1.2, 2.7], name="w")

    def step() -> Any:
        with tf.GradientTape() as tape:
            values = tf.round(w)
        found = tape.jacobian(values, w)
        return () if found is None else found

    return step


def jacobian_by_batch() -> Step:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    def step() -> Any:
        rows = tf.identity(x)
        with tf.GradientTape() as tape:
            tape.watch(rows)
            values = rows**3
        return tape.batch_jacobian(values, rows)

    return step


def second_derivative() -> Step:
    w = tf.Variable([1.0, 2.0], name="w")

    def step() -> Any:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = tf.reduce_sum(w**3)
            slope = inner.gradient(loss, w)
        return outer.gradient(slope, w)

    return step


def second_derivative_of_relu() -> Step:
    w = tf.Variable([1.0, -2.0], name="w")

    def step() -> Any:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = tf.reduce_sum(tf.nn.relu(w))
            slope = inner.gradient(loss, w)
        return outer.gradient(slope, w)

    return step


def forward_accumulator() -> Step:
    """Nobody requests a gradient: a directional derivative is computed forwards."""
    w = tf.Variable([1.0, 2.0], name="w")

    def step() -> Any:
        with tf.autodiff.ForwardAccumulator(w, tf.constant([1.0, 0.0])) as forward:
            loss = tf.reduce_sum(tf.square(w))
        return forward.jvp(loss)

    return step


def forward_over_back() -> Step:
    """A product with the Hessian."""
    w = tf.Variable([1.0, 2.0], name="w")

    def step() -> Any:
        with tf.autodiff.ForwardAccumulator(w, tf.constant([1.0, 0.0])) as forward:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w**3)
            slope = tape.gradient(loss, w)
        return forward.jvp(slope)

    return step


def zeros_for_unused() -> Step:
    w, other = tf.Variable(1.0, name="w"), tf.Variable(2.0, name="other")

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.square(w)
        return tape.gradient(loss, [w, other], unconnected_gradients=tf.UnconnectedGradients.ZERO)

    return step


def zeros_for_rounded() -> Step:
    w, other = tf.Variable(1.2, name="w"), tf.Variable(2.0, name="other")

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.square(other) + tf.round(w)
        return tape.gradient(loss, [w, other], unconnected_gradients="zero")

    return step


def several_targets() -> Step:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")

    def step() -> Any:
        with tf.GradientTape() as tape:
            first, second = tf.square(a), tf.exp(b)
        return tape.gradient([first, second], [a, b])

    return step


def weighed_target() -> Step:
    w = tf.Variable([1.0, 2.0], name="w")

    def step() -> Any:
        with tf.GradientTape() as tape:
            values = tf.square(w)
        return tape.gradient(values, w, output_gradients=tf.constant([1.0, 0.5]))

    return step


def ragged_inside() -> Step:
    rows = tf.RaggedTensor.from_row_lengths(_numbers(1.0, 2.0, 3.0), [2, 1])

    def step() -> Any:
        doubled = rows * 2.0
        with tf.GradientTape() as tape:
            tape.watch(doubled)
            loss = tf.reduce_sum(tf.square(doubled.flat_values))
        return tape.gradient(loss, doubled)

    return step


def persistent() -> Step:
    """One tape, asked for a tensor and for a variable."""
    w = tf.Variable([1.0, 2.0], name="w")

    def step() -> Any:
        with tf.GradientTape(persistent=True) as tape:
            hidden = tf.square(w)
            loss = tf.reduce_sum(tf.exp(-hidden))
        return tape.gradient(loss, hidden), tape.gradient(loss, w)

    return step


def variable_target() -> Step:
    box, kept = tf.Variable([4.0, 5.0], name="box"), tf.Variable([0.0, 0.0], name="kept", trainable=False)

    def step() -> Any:
        with tf.GradientTape() as tape:
            kept.assign(tf.square(box))
        found = tape.gradient(kept, box)
        return () if found is None else found

    return step


def nothing_requested() -> Step:
    w = tf.Variable(1.0, name="w")
    return lambda: tf.square(w)


STEPS = (
    Expected("tensor made in front of the loss", moved_in_front, ("connected",)),
    Expected("a + delta, made again", moved_again, ("unused",), ("output_not_used",)),
    Expected("activations", hidden_activations, ("connected",)),
    Expected("saliency of an image", saliency, ("connected",)),
    Expected("image that is not watched", not_watched, ("disconnected",), ("tape_not_watching",)),
    Expected("Jacobian", jacobian, ("connected",)),
    Expected("Jacobian of what is rounded", jacobian_of_rounded, ("disconnected",), ("nondiff_rounding",)),
    Expected("Jacobian of each row", jacobian_by_batch, ("connected",)),
    Expected("second derivative", second_derivative, ("connected",)),
    Expected("second derivative of a ReLU", second_derivative_of_relu, ("zero",), ("second_order_missing",)),
    Expected("ForwardAccumulator", forward_accumulator, (), ("not_measured",)),
    Expected("ForwardAccumulator around a tape", forward_over_back, ("connected",)),
    Expected("ZERO for a variable that is not used", zeros_for_unused, ("connected", "unused"), ("output_not_used",)),
    Expected(
        "ZERO for a variable that is rounded", zeros_for_rounded, ("connected", "disconnected"), ("nondiff_rounding",)
    ),
    Expected("several targets", several_targets, ("connected", "connected")),
    Expected("output_gradients", weighed_target, ("connected",)),
    Expected("ragged tensor", ragged_inside, ("connected",)),
    Expected("persistent tape", persistent, ("connected", "connected")),
    Expected("variable as target", variable_target, ("disconnected",), ("variable_assign",)),
    Expected("no gradient requested", nothing_requested, (), ("not_measured",)),
)


# The loss, what its gradient is requested for, and what is fed.
Graph = tuple[Any, list[Any], dict[Any, Any]]


def placeholder_squared() -> Graph:
    x = v1.placeholder(tf.float32, [None])
    return tf.square(x), [x], {x: [1.0, 2.0]}


def placeholder_rounded() -> Graph:
    x = v1.placeholder(tf.float32, [None])
    return tf.floor(x), [x], {x: [1.2, 2.7]}


def placeholder_and_weight() -> Graph:
    x = v1.placeholder(tf.float32, [None, 2])
    w = v1.get_variable("w", initializer=np.ones((2, 1), np.float32))
    return tf.reduce_mean(tf.square(tf.matmul(x, w))), [x, w], {x: [[1.0, 2.0]]}


def placeholder_of_indices() -> Graph:
    table, places = v1.placeholder(tf.float32, [None]), v1.placeholder(tf.int32, [None])
    return tf.gather(table, places), [table, places], {table: [1.0, 2.0], places: [1]}


def tensor_between() -> Graph:
    x = v1.placeholder(tf.float32, [None])
    hidden = tf.tanh(x)
    return tf.reduce_sum(tf.square(hidden)), [hidden, x], {x: [0.5, 1.0]}


def made_again() -> Graph:
    a = tf.constant([1.0, 2.0])
    return tf.reduce_sum(tf.square(a + 0.1)), [a + 0.1], {}


def constant_of_a_graph() -> Graph:
    a = tf.constant([1.0, 2.0])
    return tf.reduce_sum(tf.square(a)), [a], {}


def first_derivative() -> Graph:
    x = v1.placeholder(tf.float32, [None])
    [slope] = tf.gradients(tf.reduce_sum(x**3), x)
    return tf.reduce_sum(slope), [x], {x: [1.0, 2.0]}


def hessian() -> Graph:
    x = v1.placeholder(tf.float32, [2])
    [matrix] = tf.hessians(tf.reduce_sum(x**4), x)
    return tf.reduce_sum(matrix), [x], {x: [1.0, 2.0]}


def stop_gradients() -> Graph:
    """The loss is a gradient that was taken with `stop_gradients=`: total and partial derivatives differ."""
    a = v1.placeholder(tf.float32, [])
    b = 2.0 * a
    total, partial = tf.gradients(a + b, [a, b], stop_gradients=[a, b])
    return total * a + partial * b, [a], {a: 1.5}


def variable_that_is_assigned() -> Graph:
    box = v1.get_variable("box", initializer=np.array([4.0, 5.0], np.float32))
    kept = v1.get_variable("kept", initializer=np.zeros(2, np.float32), trainable=False, use_resource=True)
    with tf.control_dependencies([kept.assign(tf.square(box))]):
        return tf.reduce_sum(kept.read_value()), [box], {}


GRAPHS = (
    Expected("placeholder", placeholder_squared, ("connected",)),
    Expected("placeholder that is rounded", placeholder_rounded, ("disconnected",), ("nondiff_rounding",)),
    Expected("placeholder and weight", placeholder_and_weight, ("connected", "connected")),
    Expected("placeholder of indices", placeholder_of_indices, ("connected", "integer"), ("integer_dtype",)),
    Expected("tensor between", tensor_between, ("connected", "connected")),
    Expected("a + delta, made again", made_again, ("unused",), ("output_not_used",)),
    Expected("constant", constant_of_a_graph, ("connected",)),
    Expected("derivative of a derivative", first_derivative, ("connected",)),
    Expected("tf.hessians", hessian, ("connected",)),
    Expected("stop_gradients", stop_gradients, ("connected",)),
    Expected("variable that is assigned", variable_that_is_assigned, ("disconnected",), ("variable_assign",)),
)
