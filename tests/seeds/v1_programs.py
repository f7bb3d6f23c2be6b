"""The seeds' programs that are written for TensorFlow 1, as they stand: prints what is said of each.

A process of its own, since it switches eager execution off. Each program has a graph and a session of its own.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import tb_gradflow
from tests.seeds.answers import Answer, answer_of, gradients_in_words

GETS, NONE, ZERO = "connected", "disconnected", "zero"


@dataclass(frozen=True)
class V1Program:
    """A program of a question for TensorFlow 1, and what is true of it.

    Attributes:
        name: The question's number and what the program is, as its form for TensorFlow 2 is called if there is one.
        build: Makes a result, what its gradient is requested for, what to feed, and what to run before.
        statuses: Of what the gradient is requested for, in order.
        causes: Of the findings above information; none for what is right.
        session: Whether it runs, or is a graph alone.
    """

    name: str
    build: Callable[[], Any]
    statuses: tuple[str, ...]
    causes: tuple[str, ...] = ()
    session: bool = True


def explained(program: V1Program) -> Answer:
    with tf.Graph().as_default():
        result, asked, *rest = program.build()
        feed: Mapping[Any, Any] | None = rest[0] if rest else None
        if not program.session:
            report = tb_gradflow.explain(result, variables=asked)
            return answer_of(report, gradients_in_words(tf.gradients(result, asked)))
        with tf.Session() as running:
            running.run(tf.global_variables_initializer())
            for before in rest[1:]:
                before(running)
            report = tb_gradflow.explain(result, variables=asked, feed_dict=feed)
            gradients = tf.gradients(result, asked)
            known = running.run([each for each in gradients if each is not None], feed)
            found = [None if each is None else _array(known.pop(0)) for each in gradients]
            return answer_of(report, gradients_in_words(found))


def _array(value: Any) -> Any:
    return value.values if hasattr(value, "dense_shape") else value


# Question 0.


def per_kernel_step_filter(input: Any, weight_param: float = 20, trainable: bool = True, soft: bool = False) -> Any:
    input_shape = input.get_shape().as_list()

    weight_param_v = tf.Variable(np.full((input_shape[-1]), weight_param), dtype=tf.float32, trainable=trainable)
    weight_param_v_c = tf.clip_by_value(weight_param_v, 0, input_shape[-2])
    if soft:
        kernel_filter = tf.transpose(tf.sigmoid(weight_param_v_c[:, None] - tf.range(input_shape[-2] * 1.0)))
    else:
        kernel_filter = tf.transpose(tf.sequence_mask(weight_param_v_c, input_shape[-2], dtype=tf.float32))
    kernel_filter = tf.reshape(kernel_filter, tf.concat([(1, 1), kernel_filter.get_shape()], 0))

    output = input * kernel_filter
    tf.summary.histogram("weight_param histogram", weight_param_v)

    return output


def filtered(weight_param: float, *, soft: bool, minimize: bool) -> Callable[[], Any]:
    def build() -> Any:
        images = tf.constant(np.random.default_rng(0).normal(size=(4, 8, 8, 1)), tf.float32)
        kernel = tf.Variable(np.random.default_rng(1).normal(size=(3, 3, 1, 3)), dtype=tf.float32, name="kernel")
        convolved = tf.nn.conv2d(images, kernel, strides=[1, 1, 1, 1], padding="SAME")
        output = per_kernel_step_filter(convolved, weight_param, soft=soft)
        loss = tf.reduce_mean(tf.square(output - 1.0))
        opt = tf.train.AdamOptimizer()
        if minimize:
            train_op = opt.minimize(loss)
        else:
            grads_vars = opt.compute_gradients(loss)
            train_op = opt.apply_gradients([each for each in grads_vars if each[0] is not None])
        return loss, tf.trainable_variables(), None, lambda session: session.run(train_op)

    return build


def of_placeholder(function: Callable[[Any, Any], Any], *, fed: bool, index: bool = False) -> Callable[[], Any]:
    def build() -> Any:
        x = tf.placeholder(tf.float32, [None])
        x2 = tf.placeholder(tf.int32, [None])
        feed = {x: [1.0, 2.0], **({x2: [0, 1]} if index else {})}
        return function(x, x2), [x, x2] if index else [x], feed if fed else None

    return build


# Question 1.


def masked_loss(MW: Any, W: Any, x: Any, y_: Any) -> Any:
    masked_W = MW * W + tf.stop_gradient(tf.abs(1 - MW) * W)
    return tf.reduce_mean(tf.square(tf.linalg.matvec(x, masked_W) - y_))


def masked_training(opt: Callable[[], Any], *, forget: bool = False) -> Callable[[], Any]:
    """Explained in the second iteration, before its update."""

    def build() -> Any:
        rng = np.random.default_rng(0)
        MW, x, y_ = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32)
        W = tf.Variable(np.zeros(4), dtype=tf.float32, name="W")
        loss = masked_loss(MW, W, x, y_)
        optimizer = opt()
        grads_vars = optimizer.compute_gradients(loss, [W])
        train_op = optimizer.apply_gradients(grads_vars)
        data = {x: rng.normal(size=(8, 4)), y_: rng.normal(size=8)}

        def first_iteration(session: Any) -> None:
            session.run(tf.global_variables_initializer())
            session.run(train_op, feed_dict={MW: [0, 1, 1, 0], **data})
            if forget:
                # momentums of W in the first iteration
                masked_m_vals = session.run(optimizer.get_slot(W, "m"))
                masked_v_vals = session.run(optimizer.get_slot(W, "v"))

                # mask them before running the second iteration
                masked_m_vals[[1, 2]] = 0
                masked_v_vals[[1, 2]] = 0
                session.run(optimizer.get_slot(W, "m").assign(masked_m_vals))
                session.run(optimizer.get_slot(W, "v").assign(masked_v_vals))

        return loss, [W], {MW: [1, 0, 0, 1], **data}, first_iteration

    return build


def subsets() -> Any:
    rng = np.random.default_rng(0)
    first, second = (tf.Variable(np.zeros(2), dtype=tf.float32, name=name) for name in ("W_1_2", "W_0_3"))
    x, y_ = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32)
    W = tf.stack([second[0], first[0], first[1], second[1]])
    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, W) - y_))
    opt = tf.train.AdamOptimizer(1e-5)
    grads_vars = opt.compute_gradients(loss, [first, second])
    updates_first = opt.apply_gradients(grads_vars[:1])
    updates_second = opt.apply_gradients(grads_vars[1:])
    feed = {x: rng.normal(size=(8, 4)), y_: rng.normal(size=8)}

    def iterations(session: Any) -> None:
        session.run(tf.global_variables_initializer())
        session.run(updates_first, feed)
        session.run(updates_second, feed)

    return loss, [first, second], feed, iterations


def some_function(a: Any) -> Any:
    return tf.square(a)


def moved_gradient(*, fixed: bool) -> Callable[[], Any]:
    def build() -> Any:
        a = tf.Variable([1.0, 2.0])
        delta = tf.random.normal([2])
        b = some_function(a)
        moved = a + delta
        return (some_function(moved) if fixed else b), [moved]

    return build


def floored(value: float, how: str) -> Callable[[], Any]:
    def build() -> Any:
        A, B = 50, 7
        shape = [A, B]
        f = np.full(shape, value, dtype=np.float32)
        vif = tf.constant(f, dtype=tf.float32)
        if how == "detour":
            out1 = tf.subtract(vif, tf.subtract(vif, tf.floor(vif)))
        else:
            with tf.get_default_graph().gradient_override_map({"Floor": "CustomFloor"}):
                out1 = tf.floor(vif)
        return out1, [vif]

    return build


@tf.RegisterGradient("CustomFloor")
def _custom_floor_grad(op: Any, grads: Any) -> list[Any]:
    return [grads]


@tf.RegisterGradient("CustomGrad")
def _const_mul_grad(unused_op: Any, grad: Any) -> Any:
    return 5.0 * grad


def five_times() -> Any:
    input = tf.placeholder(tf.float32, [3])
    g = tf.get_default_graph()
    with g.gradient_override_map({"Identity": "CustomGrad"}):
        output = tf.identity(input, name="Identity")
    return output, [input], {input: [1, 2, 3]}


def overridden(*, floored: str) -> Callable[[], Any]:
    def build() -> Any:
        Vals, SomeOtherVal = tf.Variable([1.2, 2.7, 3.5]), tf.Variable(2.0)
        SomeVals = tf.floor(Vals) if floored == "before" else Vals

        def scaled() -> Any:
            G = tf.get_default_graph()
            with G.gradient_override_map({"Floor": "Identity"}):
                return tf.reduce_mean(tf.floor(SomeVals) if floored == "inside" else SomeVals) * SomeOtherVal

        return scaled(), [Vals, SomeOtherVal]

    return build


# Question 2.


def get_log_prob(mu: Any, std: float, *, stopped: bool = False) -> Any:
    tfd = importlib.import_module("tensorflow_probability").distributions
    normal = tfd.Normal(mu, scale=std)
    samples = normal.sample(sample_shape=(1))
    if stopped:
        samples = tf.stop_gradient(samples)
    log_prob = normal.log_prob(samples)
    return log_prob


def log_prob(*, stopped: bool) -> Callable[[], Any]:
    def build() -> Any:
        const = tf.constant([0.1], dtype=np.float32)
        return get_log_prob(const, 0.01, stopped=stopped), [const]

    return build


def log_prob_of_network(*, stopped: bool) -> Callable[[], Any]:
    def build() -> Any:
        x = tf.constant(np.random.default_rng(0).normal(size=(4, 3)), tf.float32)
        kernel, bias = tf.Variable(tf.ones([3, 1]), name="kernel"), tf.Variable([0.0], name="bias")
        mu = tf.squeeze(tf.matmul(x, kernel) + bias)
        return -tf.reduce_mean(get_log_prob(mu, 0.01, stopped=stopped)), [kernel, bias]

    return build


def rounded(function: Callable[[Any], Any]) -> Callable[[], Any]:
    def build() -> Any:
        x = tf.Variable([0.1, 0.52, 0.7], name="x")
        return tf.reduce_mean(tf.square(function(x) - [1.0, 0.0, 1.0])), [x]

    return build


# Question 3.


def length(sequence: Any) -> Any:
    used = tf.sign(tf.reduce_max(tf.abs(sequence), 2))
    length = tf.reduce_sum(used, 1)
    length = tf.cast(length, tf.int32)
    return length


def sequences(*, masked: bool) -> Callable[[], Any]:
    """A recurrent layer that is unrolled, as `dynamic_rnn` runs it; the loss leaves padding out, or does not."""

    def build() -> Any:
        rng = np.random.default_rng(0)
        padded = rng.normal(size=(4, 6, 3))
        padded[-2:, 4:] = 0.0
        sequence = tf.constant(padded, tf.float32)
        inward = tf.Variable(rng.normal(size=(3, 5)), dtype=tf.float32, name="inward")
        recurrent = tf.Variable(rng.normal(size=(5, 5)) / 3, dtype=tf.float32, name="recurrent")
        head = tf.Variable(rng.normal(size=(5, 1)), dtype=tf.float32, name="head")
        lengths, state, outputs = length(sequence), tf.zeros([4, 5]), []
        for time in range(6):
            new = tf.tanh(tf.matmul(sequence[:, time], inward) + tf.matmul(state, recurrent))
            state = tf.where(time < lengths, new, state)
            outputs.append(tf.where(time < lengths, new, tf.zeros_like(new)))
        output = tf.nn.relu(tf.tensordot(tf.stack(outputs, 1), head, 1) + 1.0)
        mask = tf.expand_dims(tf.sign(tf.reduce_max(tf.abs(sequence), 2)), -1)
        final_output = output * mask if masked else output
        return tf.reduce_mean(tf.square(final_output)), [inward, recurrent, head]

    return build


# Question 4.


def branched(*, by_cond: bool) -> Callable[[], Any]:
    def build() -> Any:
        first, second = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
        if by_cond:
            result = tf.cond(tf.constant(True), lambda: tf.reduce_sum(first), lambda: tf.reduce_sum(second))
        else:
            result = tf.reduce_sum(tf.where([True, False], first, second))
        return result, [first, second]

    return build


def adam() -> Any:
    return tf.train.AdamOptimizer(1e-5)


def _each(name: str, function: Callable[[Any, Any], Any], statuses: tuple[str, ...], *causes: str) -> list[V1Program]:
    """Of a placeholder that is fed, and of one that is not."""
    build = functools.partial(of_placeholder, function, index=len(statuses) == 2)
    return [
        V1Program(name, build(fed=True), statuses, causes),
        V1Program(f"{name}, not fed", build(fed=False), statuses, causes, session=False),
    ]


PROGRAMS = (
    V1Program(
        "0 per_kernel_step_filter, minimize",
        filtered(20, soft=False, minimize=True),
        (GETS, NONE),
        ("nondiff_comparison",),
    ),
    V1Program(
        "0 per_kernel_step_filter, compute_gradients",
        filtered(20, soft=False, minimize=False),
        (GETS, NONE),
        ("nondiff_comparison",),
    ),
    V1Program("0 per_kernel_step_filter with a sigmoid, minimize", filtered(4, soft=True, minimize=True), (GETS, GETS)),
    *_each("0 square of a tensor", lambda x, x2: tf.square(x), (GETS,)),
    *_each("0 floor of a tensor", lambda x, x2: tf.floor(x), (NONE,), "nondiff_rounding"),
    *_each("0 mask of a tensor", lambda x, x2: tf.sequence_mask(x, dtype=tf.float32), (NONE,), "nondiff_comparison"),
    *_each("0 gather of a tensor", tf.gather, (GETS, "integer")),
    V1Program("1 gradient at a + delta", moved_gradient(fixed=False), ("unused",), ("output_not_used",)),
    V1Program("1 gradient at a + delta, fixed", moved_gradient(fixed=True), (GETS,)),
    V1Program("1 floor by a detour", floored(1.0, "detour"), (ZERO,), ("nondiff_rounding",)),
    V1Program("1 floor with a custom gradient", floored(1.0, "override"), (GETS,)),
    V1Program("1 gradient_override_map, five times", five_times, (GETS,)),
    V1Program("1 gradient_override_map around no floor", overridden(floored="nowhere"), (GETS, GETS)),
    V1Program(
        "1 gradient_override_map behind the floor",
        overridden(floored="before"),
        (NONE, GETS),
        ("nondiff_rounding",),
    ),
    V1Program("1 gradient_override_map around the floor", overridden(floored="inside"), (GETS, GETS)),
    V1Program("1 masked weight and Adam", masked_training(adam), (GETS,)),
    V1Program("1 masked weight and Adam, get_slot", masked_training(adam, forget=True), (GETS,)),
    V1Program("1 masked weight and SGD", masked_training(lambda: tf.train.GradientDescentOptimizer(1e-5)), (GETS,)),
    V1Program("1 apply_gradients on subsets", subsets, (GETS, GETS)),
    V1Program("2 round", rounded(tf.round), (NONE,), ("nondiff_rounding",)),
    V1Program("2 round by a sine", rounded(lambda x: x - tf.sin(2 * np.pi * x) / (2 * np.pi)), (GETS,)),
    V1Program(
        "2 round by steep limits",
        rounded(lambda x: tf.minimum(tf.maximum(x - 0.499, 0) * 10000, 1)),
        (ZERO,),
        ("saturation_clip",),
    ),
    V1Program("2 round, straight through", rounded(lambda x: x - tf.stop_gradient(x - tf.round(x))), (GETS,)),
    V1Program(
        "2 round by a steep exponential",
        rounded(lambda x: tf.exp(1000 * (x - 0.5)) / (tf.exp(1000 * (x - 0.5)) + 1)),
        ("nan",),
        ("exp_overflow",),
    ),
    V1Program("2 own density", log_prob(stopped=False), (ZERO,), ("gradient_cancellation",)),
    V1Program("2 own density, stopped", log_prob(stopped=True), (GETS,)),
    V1Program(
        "2 own density of a network", log_prob_of_network(stopped=False), (ZERO, ZERO), ("gradient_cancellation",)
    ),
    V1Program("2 own density of a network, stopped", log_prob_of_network(stopped=True), (GETS, GETS)),
    V1Program("3 lengths and output * mask", sequences(masked=True), (GETS, GETS, GETS)),
    V1Program("3 lengths without a mask in the loss", sequences(masked=False), (GETS, GETS, GETS)),
    V1Program("4 where", branched(by_cond=False), (GETS, GETS)),
    V1Program("4 cond, true", branched(by_cond=True), (GETS, ZERO)),
)


def main() -> None:
    tf.disable_eager_execution()
    told = {program.name: explained(program).to_dict() for program in PROGRAMS}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
