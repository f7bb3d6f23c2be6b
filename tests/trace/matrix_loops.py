"""Steps that people write themselves: name -> a maker, which is given what compiles the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
ROWS = 8

Norms = dict[str, dict[str, float]]


class Loop:
    """A step, and what an eager tape says of the gradients that it takes first.

    `losses` answers, by the name that the step's source has for each loss, the loss and its variables.
    """

    losses: Callable[[], dict[str, tuple[Callable[[], Any], Sequence[Any]]]]
    step: Any

    def expected(self) -> Norms:
        return {name: norms(loss, variables) for name, (loss, variables) in self.losses().items()}


def norms(loss: Callable[[], Any], variables: Sequence[Any]) -> dict[str, float]:
    raw = [raw_of(variable) for variable in variables]
    if not raw:
        return {}
    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, raw)
    return {
        variable.name.removesuffix(":0"): float(tf.norm(tf.cast(tf.abs(tf.convert_to_tensor(g)), tf.float64)))
        for variable, g in zip(raw, gradients, strict=True)
    }


def raw_of(variable: Any) -> Any:
    return getattr(variable, "_value", variable)


def numbers(*shape: int, seed: int = 3) -> Any:
    return tf.constant(np.random.default_rng(seed).normal(size=(ROWS, *shape)).astype("float32"))


def network(name: str, *sizes: int, last: Any = None) -> Any:
    hidden = [layers.Dense(size, "tanh") for size in sizes[1:-1]]
    return keras.Sequential([keras.Input((sizes[0],)), *hidden, layers.Dense(sizes[-1], last)], name=name)


def descend(variables: Sequence[Any], gradients: Sequence[Any]) -> None:
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(0.05 * tf.convert_to_tensor(gradient))


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


class Single(Loop):
    """One loss of a few variables, taken in the way that `taken` says."""

    def __init__(self, compiled: Any, loss: Callable[..., Any], *initial: Any, taken: str = "plain") -> None:
        variables = [tf.Variable(value, name=f"v{number}") for number, value in enumerate(initial)]

        def taking() -> Any:
            with tf.GradientTape(persistent=taken == "persistent") as tape:
                value = loss(*variables)
            if taken == "jacobian":
                with tf.GradientTape() as other:
                    several = tf.stack([loss(*variables), 2.0 * loss(*variables)])
                other.jacobian(several, variables)
            return value, tape.gradient(value, variables)

        def step() -> Any:
            if taken == "loop":
                result = tf.constant(0.0)
                for _ in tf.range(2):
                    with tf.GradientTape() as tape:
                        value = loss(*variables)
                    gradients = tape.gradient(value, variables)
                    result += value
                return result
            value, gradients = (tf.function(taking) if taken == "nested" else taking)()
            descend(variables, gradients)
            return tf.math.real(value)

        self.losses = lambda: {"value": (lambda: loss(*variables), variables)}
        self.step = compiled(step)


def quadratic(a: Any, b: Any) -> Any:
    return tf.reduce_sum(tf.square(tf.tanh(a) * b - 0.3))


def spectrum(a: Any) -> Any:
    return tf.reduce_sum(tf.square(tf.abs(tf.signal.fft(a) - tf.complex(1.0, 0.5))))


def unlikely(mean: Any, spread: Any) -> Any:
    import tensorflow_probability as tfp

    return -tf.reduce_mean(tfp.distributions.Normal(mean, tf.nn.softplus(spread)).log_prob([0.3, -1.2, 2.0]))


_A, _B = [0.5, -1.0, 2.0], [1.0, 0.2, -0.7]


def xla(compiled: Any) -> Any:
    return lambda step: compiled(tf.function(step, jit_compile=True))


LOOPS: dict[str, Callable[[Any], Loop]] = {
    "GAN": Gan,
    "WGAN-GP": WganGp,
    "VAE": Vae,
    "VQ-VAE": VqVae,
    "distillation": Distillation,
    "DQN": Dqn,
    "MAML": Maml,
    "persistent tape": lambda compiled: Single(compiled, quadratic, _A, _B, taken="persistent"),
    "nested function": lambda compiled: Single(compiled, quadratic, _A, _B, taken="nested"),
    "a loop of steps": lambda compiled: Single(compiled, quadratic, _A, _B, taken="loop"),
    "jacobian": lambda compiled: Single(compiled, quadratic, _A, _B, taken="jacobian"),
    "complex": lambda compiled: Single(compiled, spectrum, np.array([1 + 2j, -0.5j, 0.3], "complex64")),
    "float64": lambda compiled: Single(compiled, quadratic, np.array(_A), np.array(_B)),
    "XLA": lambda compiled: Single(xla(compiled), quadratic, _A, _B),
    "TensorFlow Probability": lambda compiled: Single(compiled, unlikely, 0.1, 0.7),
}
