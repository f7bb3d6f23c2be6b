"""Forms of loops that public programs have, recorded unchanged: none of them is a reason for a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.eager.test_loops_as_typed import recorded

TWO_NETWORKS = """
policy = keras.Sequential([keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)], name="policy")
critic = keras.Sequential([keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)], name="critic")
opt = keras.optimizers.Adam(0.01)
for _ in range({steps}):
    with tf.GradientTape() as tape:
        action = policy(x) + 0.1 * tf.random.normal([8, 1])
        loss = -tf.reduce_mean(critic(tf.concat([x, action], 1)))
    gradients = tape.gradient(loss, policy.trainable_variables)
    opt.apply_gradients(zip(gradients, policy.trainable_variables))
"""


def test_the_first_step_of_a_loop_builds_networks_that_another_loop_trains(tmp_path: Path) -> None:
    """Layers are built by their first call, here in a step that does not train them: they are not created anew."""
    report = recorded(TWO_NETWORKS.format(steps=1), tmp_path / "program")

    assert [(each.cause, each.severity) for each in report.findings] == [("untracked_variable", "info")]


def test_random_numbers_of_an_eager_loop_are_those_without_the_recorder(tmp_path: Path) -> None:
    report = recorded(TWO_NETWORKS.format(steps=3), tmp_path / "program")

    assert "random numbers" not in str(report)


DEVIATION = """
dense = keras.layers.Dense(2)
opt = keras.optimizers.Adam(0.01)
dense.build((None, 3))
for _ in range(2):
    with tf.GradientTape() as tape:
        out = dense(x)
        deviation = tf.clip_by_value(out[:, 1:], 1e-6, 1)
        density = -0.5 * ((y - out[:, :1]) / deviation) ** 2 - tf.math.log(deviation)
        loss = -tf.reduce_mean(density)
    opt.apply_gradients(zip(tape.gradient(loss, dense.trainable_variables), dense.trainable_variables))
"""


def test_a_standard_deviation_between_limits_is_no_probability(tmp_path: Path) -> None:
    report = recorded(DEVIATION, tmp_path / "program")

    assert not any("probabilities" in each.message for each in report.findings)


CODEBOOK = """
class Codebook(tf.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = tf.Variable(tf.random.normal([3, 4]), name="embeddings")
        self.kernel = tf.Variable(tf.ones([3, 3]), name="kernel")

    def __call__(self, x):
        z = x @ self.kernel
        chosen = tf.one_hot(tf.argmax(z @ self.embeddings, 1), 4)
        codes = chosen @ tf.transpose(self.embeddings)
        {update}
        return z, tf.stop_gradient(codes)


book = Codebook()
for _ in range(3):
    with tf.GradientTape() as tape:
        z, codes = book(x)
        loss = tf.reduce_mean((z - codes) ** 2)
    gradients = tape.gradient(loss, book.trainable_variables)
    for gradient, variable in zip(gradients, book.trainable_variables):
        if gradient is not None:
            variable.assign_sub(0.1 * gradient)
"""


@pytest.mark.parametrize(
    ("update", "severity"),
    [
        ("means = tf.transpose(z) @ chosen; self.embeddings.assign(means / (1.0 + tf.reduce_sum(chosen, 0)))", "info"),
        ("self.embeddings.assign(0.9 * self.embeddings)", "error"),
        ("means = tf.transpose(z) @ chosen", "error"),
    ],
)
def test_a_codebook_of_moving_averages_needs_no_gradient(update: str, severity: str, tmp_path: Path) -> None:
    report = recorded(CODEBOOK.format(update=update), tmp_path / "program")

    assert [each.severity for each in report.findings] == [severity]


CRITIC = """
critic = keras.Sequential([keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)], name="critic")
opt = keras.optimizers.SGD(0.001)
for _ in range(3):
    with tf.GradientTape() as tape:
        real, fake = critic(0.1 * x), critic(0.1 * x[::-1] + 0.1)
        loss = {loss}
    opt.apply_gradients(zip(tape.gradient(loss, critic.trainable_variables), critic.trainable_variables))
"""


@pytest.mark.parametrize(
    "loss",
    [
        "tf.reduce_mean(tf.nn.relu(1.0 - real)) + tf.reduce_mean(tf.nn.relu(1.0 + fake))",
        "tf.reduce_mean(fake) - tf.reduce_mean(real)",
        "-tf.reduce_mean(real) + tf.reduce_mean(fake)",
    ],
)
def test_the_last_bias_of_a_critic_cancels(loss: str, tmp_path: Path) -> None:
    report = recorded(CRITIC.format(loss=loss), tmp_path / "program")

    assert [(each.cause, each.severity) for each in report.findings] == [("shift_invariant_parameter", "info")]


def test_a_bound_is_no_fix_for_a_logarithm_of_negative_values(tmp_path: Path) -> None:
    """The bound would leave no gradient for most rows: the value is a logarithm already."""
    likelihood = """
w = tf.Variable(tf.ones([3, 1]))
for _ in range(2):
    with tf.GradientTape() as tape:
        log_density = -0.5 * (x @ w - y) ** 2 - 0.9
        loss = -tf.reduce_mean(tf.math.log(log_density))
    w.assign_sub(0.01 * tape.gradient(loss, w))
"""
    finding = recorded(likelihood, tmp_path / "program").findings[0]

    assert finding.cause == "log_zero"
    assert finding.edit is None
    assert "a lower bound would leave no gradient" in finding.fix


RECOMPUTED = """
v, w, unused = tf.Variable(tf.eye(3), name="v"), tf.Variable(tf.eye(3), name="w"), tf.Variable(1.0, name="unused")
block = tf.recompute_grad(lambda x: tf.tanh(x @ v))

@tf.custom_gradient
def solved(x):
    def grad(dy, variables):
        with tf.GradientTape() as inner:
            inner.watch(x)
            again = tf.sin(x @ w)
        into_x, into_w = inner.gradient(again, [x, w], output_gradients=dy)
        return into_x, [into_w]

    return tf.sin(x @ w), grad

for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(solved(block(x)))
    gradients = tape.gradient(loss, [v, w, unused])
    {update}
"""


@pytest.mark.parametrize(
    "update",
    [
        "keras.optimizers.SGD(0.1).apply_gradients(zip(gradients[:2], [v, w]))",
        "v.assign_sub(0.1 * gradients[0]); w.assign_sub(0.1 * gradients[1])",
    ],
)
def test_a_tape_that_opens_while_a_gradient_is_computed_begins_no_step(update: str, tmp_path: Path) -> None:
    """`recorded` fails if there is more than one run."""
    report = recorded(RECOMPUTED.format(update=update), tmp_path / "program")

    assert report.step == 2
    assert {name: each.status for name, each in report.variables.items()} == {
        "v": "connected",
        "w": "connected",
        "unused": "unused",
    }


DISTANCE = """
dense = keras.layers.Dense(2)
dense.build((None, 3))
opt = keras.optimizers.SGD(0.01)
for step in range(300):
    other = x if step == 42 else x[::-1]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.norm(dense(x) - dense(other), axis=1))
    opt.apply_gradients(zip(tape.gradient(loss, dense.trainable_variables), dense.trainable_variables))
"""


def test_weights_that_become_nan_between_recorded_steps_are_told(tmp_path: Path) -> None:
    """The gradient of a norm of zero is NaN, in a step that is not recorded; the next one is."""
    report = recorded(DISTANCE, tmp_path / "program")

    [finding] = [each for each in report.findings if each.severity == "error"]
    assert finding.cause == "nonfinite_weights"
    assert report.step > 42
