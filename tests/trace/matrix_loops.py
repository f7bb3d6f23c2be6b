"""Steps that people write themselves: name -> a maker, which is given what compiles the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.trace.matrix_single import (
    Loop,
    Single,
    descend,
    network,
    numbers,
    quadratic,
    raw_of,
    spectrum,
    unlikely,
    xla,
)


class Gan(Loop):
    def __init__(self, compiled: Any) -> None:
        keras.utils.set_random_seed(7)
        maker, judge, noise, real = network("maker", 2, 5, 4), network("judge", 4, 5, 1), numbers(2), numbers(4, seed=4)

        def judged() -> Any:
            return tf.reduce_mean(tf.nn.softplus(judge(maker(noise)))) + tf.reduce_mean(tf.nn.softplus(-judge(real)))

        def made() -> Any:
            return tf.reduce_mean(tf.nn.softplus(-judge(maker(noise))))

        def step() -> Any:
            with tf.GradientTape() as d_tape, tf.GradientTape() as g_tape:
                d_loss, g_loss = judged(), made()
            d_gradients = d_tape.gradient(d_loss, judge.trainable_variables)
            g_gradients = g_tape.gradient(g_loss, maker.trainable_variables)
            descend(judge.trainable_variables, d_gradients)
            descend(maker.trainable_variables, g_gradients)
            return d_loss + g_loss

        self.losses = lambda: {
            "d_loss": (judged, judge.trainable_variables),
            "g_loss": (made, maker.trainable_variables),
        }
        self.step = compiled(step)


class WganGp(Loop):
    """The penalty is on a gradient that an inner tape takes."""

    def __init__(self, compiled: Any) -> None:
        keras.utils.set_random_seed(7)
        critic, fake, real = network("critic", 4, 6, 1), numbers(4), numbers(4, seed=4)

        def critical() -> Any:
            between = 0.3 * fake + 0.7 * real
            with tf.GradientTape() as inner:
                inner.watch(between)
                score = critic(between)
            slope = inner.gradient(score, between)
            penalty = tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1.0))
            return tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10.0 * penalty

        def step() -> Any:
            with tf.GradientTape() as tape:
                loss = critical()
            descend(critic.trainable_variables, tape.gradient(loss, critic.trainable_variables))
            return loss

        # The inner gradient is one that the step takes as well, of no variable.
        self.losses = lambda: {"score": (lambda: 0.0, []), "loss": (critical, critic.trainable_variables)}
        self.step = compiled(step)


class Vae(Loop):
    def __init__(self, compiled: Any) -> None:
        keras.utils.set_random_seed(7)
        encoder, decoder, x = network("encoder", 4, 6, 4), network("decoder", 2, 6, 4), numbers(4)
        variables = encoder.trainable_variables + decoder.trainable_variables

        def bound() -> Any:
            mean, spread = tf.split(encoder(x), 2, axis=1)
            drawn = tf.random.stateless_normal(tf.shape(mean), [1, 2])
            rebuilt = decoder(mean + tf.exp(0.5 * spread) * drawn)
            divergence = -0.5 * tf.reduce_mean(1.0 + spread - tf.square(mean) - tf.exp(spread))
            return tf.reduce_mean(tf.square(rebuilt - x)) + divergence

        def step() -> Any:
            with tf.GradientTape() as tape:
                elbo = bound()
            descend(variables, tape.gradient(elbo, variables))
            return elbo

        self.losses = lambda: {"elbo": (bound, variables)}
        self.step = compiled(step)


class VqVae(Loop):
    """A straight-through estimator around the nearest entry of a code book."""

    def __init__(self, compiled: Any) -> None:
        keras.utils.set_random_seed(7)
        encoder, decoder, x = network("encoder", 4, 6, 2), network("decoder", 2, 6, 4), numbers(4)
        book = tf.Variable(np.random.default_rng(2).normal(size=(5, 2)).astype("float32"), name="book")
        variables = [*encoder.trainable_variables, *decoder.trainable_variables, book]

        def loss_of() -> Any:
            found = encoder(x)
            distance = tf.reduce_sum(tf.square(found[:, None] - book[None]), -1)
            nearest = tf.gather(book, tf.argmin(distance, 1))
            passed = found + tf.stop_gradient(nearest - found)
            codes = tf.reduce_mean(tf.square(tf.stop_gradient(found) - nearest))
            commitment = tf.reduce_mean(tf.square(found - tf.stop_gradient(nearest)))
            return tf.reduce_mean(tf.square(decoder(passed) - x)) + codes + 0.25 * commitment

        def step() -> Any:
            with tf.GradientTape() as tape:
                total = loss_of()
            descend(variables, tape.gradient(total, variables))
            return total

        self.losses = lambda: {"total": (loss_of, variables)}
        self.step = compiled(step)


class Distillation(Loop):
    def __init__(self, compiled: Any) -> None:
        keras.utils.set_random_seed(7)
        teacher, student, x = network("teacher", 4, 8, 3), network("student", 4, 3), numbers(4)

        def soft() -> Any:
            targets = tf.nn.softmax(teacher(x) / 2.0)
            return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(targets, student(x) / 2.0))

        def step() -> Any:
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([raw_of(each) for each in student.trainable_variables])
                student_loss = soft()
            descend(student.trainable_variables, tape.gradient(student_loss, student.trainable_variables))
            return student_loss

        self.losses = lambda: {"student_loss": (soft, student.trainable_variables)}
        self.step = compiled(step)


class Dqn(Loop):
    """A target network that is only read."""

    def __init__(self, compiled: Any) -> None:
        keras.utils.set_random_seed(7)
        online, target, state, following = (
            network("q", 4, 8, 3),
            network("target", 4, 8, 3),
            numbers(4),
            numbers(4, seed=4),
        )
        action, reward = tf.constant([0, 1, 2, 0, 1, 2, 0, 1]), numbers()

        def error() -> Any:
            wanted = reward + 0.9 * tf.reduce_max(tf.stop_gradient(target(following)), 1)
            chosen = tf.gather(online(state), action, batch_dims=1)
            return tf.reduce_mean(tf.square(wanted - chosen))

        def step() -> Any:
            with tf.GradientTape() as tape:
                td_error = error()
            descend(online.trainable_variables, tape.gradient(td_error, online.trainable_variables))
            for slow, fast in zip(target.variables, online.variables, strict=True):
                slow.assign(0.9 * slow + 0.1 * fast)
            return td_error

        self.losses = lambda: {"td_error": (error, online.trainable_variables)}
        self.step = compiled(step)


class Maml(Loop):
    """The outer gradient goes through a step of descent."""

    def __init__(self, compiled: Any) -> None:
        weight = tf.Variable(np.random.default_rng(2).normal(size=(4, 1)).astype("float32"), name="weight")
        x, y, x_test, y_test = numbers(4), numbers(1), numbers(4, seed=5), numbers(1, seed=6)

        def inner() -> Any:
            return tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, weight)) - y))

        def outer() -> Any:
            with tf.GradientTape() as tape:
                task_loss = inner()
            adapted = weight - 0.1 * tape.gradient(task_loss, weight)
            return tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x_test, adapted)) - y_test))

        def step() -> Any:
            with tf.GradientTape() as tape:
                meta_loss = outer()
            descend([weight], [tape.gradient(meta_loss, weight)])
            return meta_loss

        # What the weight gets is what the outer tape answers.
        self.losses = lambda: {"task_loss": (inner, []), "meta_loss": (outer, [weight])}
        self.step = compiled(step)


_A, _B = [0.5, -1.0, 2.0], [1.0, 0.2, -0.7]

LOOPS: dict[str, Callable[[Any], Loop]] = {
    "GAN": Gan,
    "WGAN-GP": WganGp,
    "VAE": Vae,
    "VQ-VAE": VqVae,
    "distillation": Distillation,
    "DQN": Dqn,
    "MAML": Maml,
    "persistent tape": lambda compiled: Single(compiled, quadratic, _A, _B, taken="persistent"),
    "asked inside of the tape's block": lambda compiled: Single(compiled, quadratic, _A, _B, taken="inside"),
    "nested function": lambda compiled: Single(compiled, quadratic, _A, _B, taken="nested"),
    "a loop of steps": lambda compiled: Single(compiled, quadratic, _A, _B, taken="loop"),
    "jacobian": lambda compiled: Single(compiled, quadratic, _A, _B, taken="jacobian"),
    "complex": lambda compiled: Single(compiled, spectrum, np.array([1 + 2j, -0.5j, 0.3], "complex64")),
    "float64": lambda compiled: Single(compiled, quadratic, np.array(_A), np.array(_B)),
    "XLA": lambda compiled: Single(xla(compiled), quadratic, _A, _B),
    "TensorFlow Probability": lambda compiled: Single(compiled, unlikely, 0.1, 0.7),
}
