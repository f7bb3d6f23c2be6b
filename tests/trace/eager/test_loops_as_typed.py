"""Loops and training steps that are recorded unchanged, as in public questions: what is said, and whether the edit that
is offered repairs the program.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tb_gradflow.serve.reports.report import Report

HEAD = """
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
x, y = tf.random.normal([8, 3]), tf.random.normal([8, 1])
"""

NETWORK = """
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)], name="model")
opt = keras.optimizers.SGD(0.1)

def update(gradients):
    opt.apply_gradients([(g, v) for g, v in zip(gradients, model.trainable_variables) if g is not None])
"""

FORWARD_BEFORE = (
    NETWORK
    + """
for _ in range(2):
    pred = model(x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pred - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    if gradients[0] is not None:
        update(gradients)
"""
)

LOSS_BEFORE = """
w = tf.Variable([1.0, 2.0, 3.0], name="w")
for _ in range(2):
    loss = tf.reduce_sum(tf.square(w - 1.0))
    with tf.GradientTape() as tape:
        tape.watch(w)
    gradient = tape.gradient(loss, w)
    if gradient is not None:
        w.assign_sub(0.1 * gradient)
"""

CLOSURE = """
w = tf.Variable([1.0, 2.0, 3.0], name="w")
opt = tf.compat.v1.train.AdamOptimizer(0.1)
loss = tf.reduce_sum(tf.square(w - 1.0))
try:
    opt.minimize(lambda: loss, var_list=[w])
except ValueError:
    pass
"""

NAMED_CLOSURE = CLOSURE.replace("try:", "of_step = lambda: loss\ntry:").replace("lambda: loss,", "of_step,")

EPISODE_BEFORE = """
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, "softmax")], name="policy")
opt, rng = keras.optimizers.SGD(0.1), np.random.default_rng(0)
for episode in range(2):
    log_probs, rewards, state = [], [], rng.normal(size=3).astype("float32")
    for moment in range(4):
        probs = model(state[None])
        action = moment % 2
        log_probs.append(tf.math.log(probs[0, action]))
        state = (state + rng.normal(size=3)).astype("float32")
        rewards.append(float(state[0]))
    returns = np.cumsum(rewards[::-1])[::-1]
    returns = ((returns - np.mean(returns)) / (np.std(returns) + 1e-7)).tolist()
    with tf.GradientTape() as tape:
        loss = -sum(log_prob * value for log_prob, value in zip(log_probs, returns))
    gradients = tape.gradient(loss, model.trainable_variables)
    if gradients[0] is not None:
        opt.apply_gradients(zip(gradients, model.trainable_variables))
"""

SECOND_DERIVATIVE = (
    NETWORK
    + """
def train_step(x, y):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                u = model(x)
            slope = inner.gradient(u, x)
        curvature = outer.gradient(slope, x)
        loss = tf.reduce_mean(tf.square(-curvature - y))
    update(tape.gradient(loss, model.trainable_variables))

for _ in range(2):
    try:
        train_step(x, y)
    except TypeError:  # -None
        pass
"""
)

OLD_POLICY = """
policy = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(2, "softmax")])
opt = keras.optimizers.SGD(0.1)
taken, advantage = tf.one_hot([0, 1, 1, 0, 1, 0, 0, 1], 2), y[:, 0]
for _ in range(2):
    with tf.GradientTape() as tape:
        new = tf.reduce_sum(policy(x) * taken, 1)
        old = tf.reduce_sum(policy(x) * taken, 1)
        loss = -tf.reduce_mean(tf.exp(tf.math.log(new) - tf.math.log(old)) * advantage)
    opt.apply_gradients(zip(tape.gradient(loss, policy.trainable_variables), policy.trainable_variables))
"""

LOSS_OF_PYTHON = (
    NETWORK
    + """
with tf.GradientTape() as tape:
    errors = []
    for row in range(4):
        errors.append(float(tf.square(model(x[row:row + 1]) - y[row])[0, 0]))
    loss = tf.convert_to_tensor(np.histogram(errors)[0].std(), tf.float32)
tape.gradient(loss, model.trainable_variables)
"""
)

PASTED = """
corner = tf.Variable([0.2, 0.3], name="corner")
for _ in range(2):
    with tf.GradientTape() as tape:
        canvas = tf.Variable(tf.ones([8, 8]), trainable=False)
        first = tf.cast(corner * 8.0, tf.int32)
        canvas[first[0]:, first[1]:].assign(tf.zeros([8 - first[0], 8 - first[1]]))
        loss = tf.reduce_mean(tf.square(tf.convert_to_tensor(canvas) - 0.5 * tf.eye(8)))
    tape.gradient(loss, corner)
"""

MEAN_AFTER = (
    NETWORK
    + """
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        errors = tf.square(model(x) - y)
    loss = tf.reduce_mean(errors)
    gradients = tape.gradient(loss, model.trainable_variables)
    if gradients[0] is not None:
        update(gradients)
    return loss

for _ in range(2):
    train_step(x, y)
"""
)

RESET = (
    NETWORK
    + """
for _ in range(2):
    with tf.GradientTape() as tape:
        pred = model(x)
        tape.reset()  # forget the last epoch
        loss = tf.reduce_mean(tf.square(pred - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    if gradients[0] is not None:
        update(gradients)
"""
)

OF_THE_COPY = (
    NETWORK
    + """
target = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)], name="target")
for _ in range(2):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(target(x) - y))
    tape.gradient(loss, model.trainable_variables)
"""
)

TWO_REBOUND = """
w, b = tf.Variable(tf.ones([3, 1]), name="w"), tf.Variable(0.0, name="b")
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ w + b - y))
    dw, db = tape.gradient(loss, [w, b])
    if dw is None:
        break
    w = w - 0.1 * dw
    b = b - 0.1 * db
"""

TWO_REBOUND_AT_ONCE = TWO_REBOUND.replace(
    "    w = w - 0.1 * dw\n    b = b - 0.1 * db\n", "    w, b = w - 0.1 * dw, b - 0.1 * db\n"
)

TWO_REBOUND_ON_A_LINE = TWO_REBOUND.replace("dw\n    b = b", "dw; b = b")

LISTED = """
ws = [tf.Variable(tf.random.normal([3, 1])), tf.Variable(tf.zeros([1]))]
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ ws[0] + ws[1] - y))
    gradients = tape.gradient(loss, ws)
    if gradients[0] is None:
        break
    for i in range(2):
        ws[i] = ws[i] - 0.1 * gradients[i]
"""

LISTED_AT_ONCE = LISTED.replace(
    "for i in range(2):\n        ws[i] = ws[i] - 0.1 * gradients[i]",
    "ws = [w - 0.1 * g for w, g in zip(ws, gradients)]",
)

BESIDE_A_VARIABLE = """
state = {"w": tf.Variable(tf.zeros([3, 1])), "h": tf.constant(1.0)}
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(state["h"] * (x @ state["w"]) - y))
    gradients = tape.gradient(loss, [state["w"], state["h"]])
    state["w"].assign_sub(0.1 * gradients[0])
    state["h"] = 0.9 * state["h"] + 0.1
"""

BESIDE_ONE_IN_A_LIST = (
    BESIDE_A_VARIABLE.replace('["w"]', "[0]").replace('["h"]', "[1]").replace('{"w": ', "[").replace('"h": ', "")
).replace("(1.0)}", "(1.0)]")

IN_THE_REQUEST = (
    NETWORK
    + """
for _ in range(2):
    with tf.GradientTape() as tape:
        losses = [tf.reduce_mean(tf.square(model(x) - y)), tf.reduce_mean(tf.abs(model(x) - y))]
    gradients = tape.gradient(tf.add_n(losses) / 2.0, model.trainable_variables)
    if gradients[0] is not None:
        update(gradients)
"""
)

CLIPPED_IMAGE = """
image = tf.Variable(tf.random.uniform([2, 3]), name="image")
opt = keras.optimizers.SGD(0.1)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(image - x[:2]))
    gradient = tape.gradient(loss, image)
    try:
        opt.apply_gradients([(gradient, image)])
    except AttributeError:
        break
    image = tf.clip_by_value(image, 0.0, 1.0)
"""

LOG_BY_NUMPY = """
body, actor, critic = (keras.layers.Dense(n) for n in (4, 2, 1))
for _ in range(2):
    with tf.GradientTape() as tape:
        hidden = body(x)
        chances = tf.nn.softmax(actor(hidden))
        log_chances = []
        for row in range(3):
            log_chances.append(np.log(chances[row, 1]))
        value = critic(hidden)[0, 0]
        loss = sum(-each * (row - 0.3) for row, each in enumerate(log_chances)) + (1.0 - value) ** 2
    variables = body.trainable_variables + actor.trainable_variables + critic.trainable_variables
    tape.gradient(loss, variables)
"""

ROUNDED_AND_CHOSEN = """
w = tf.Variable([0.7, 1.9], name="w")

@tf.function
def step():
    with tf.GradientTape() as tape:
        v = w * 2.0
        loss = tf.reduce_sum(tf.square(tf.minimum(tf.floor(v), v + 0.2) - 9.5))
    w.assign_sub(0.01 * tape.gradient(loss, w))

for _ in range(2):
    step()
"""

DEVIATIONS_OF_BOTH_VIEWS = """
net = keras.layers.Dense(4, "relu", bias_initializer=keras.initializers.Constant(-9.0))
with tf.GradientTape() as tape:
    first, second = net(x), net(x + 0.1)
    std_first = tf.sqrt(tf.math.reduce_variance(first, axis=0))
    std_second = tf.sqrt(tf.math.reduce_variance(second, axis=0))
    loss = tf.reduce_mean(tf.nn.relu(1.0 - std_first)) + tf.reduce_mean(tf.nn.relu(1.0 - std_second))
gradients = tape.gradient(loss, net.trainable_variables)
"""

LIKELIHOOD = """
data = tf.random.normal([200], 2.0, 3.0)
location, raw = tf.Variable(0.0, name="location"), tf.Variable(1.0, name="raw")

@tf.function
def step():
    with tf.GradientTape() as tape:
        scale = tf.nn.softplus(raw)
        loss = tf.reduce_mean(tf.square((data - location) / scale) / 2.0 + tf.math.log(scale))
    for variable, gradient in zip([location, raw], tape.gradient(loss, [location, raw])):
        variable.assign_sub(1.0 * gradient)
    return loss

for _ in range(1001):
    step()
"""

REGRESSION = """
labels = tf.cast(y > 0.0, tf.float32)
w, b = tf.Variable(tf.zeros([3, 1]), name="w"), tf.Variable(0.0, name="b")

@tf.function
def step():
    with tf.GradientTape() as tape:
        penalty = 0.1 * tf.reduce_sum(tf.square(w))
        loss = tf.reduce_mean(tf.nn.softplus(x @ w + b) - labels * (x @ w + b)) + penalty
    for variable, gradient in zip([w, b], tape.gradient(loss, [w, b])):
        variable.assign_sub(1.0 * gradient)
    return loss

for _ in range(1001):
    step()
"""

MIXTURE = """
data = tf.concat([tf.random.normal([60], -2.0, 0.7), tf.random.normal([40], 2.5, 1.0)], 0)[:, None]
mu, log_scale, weights = (tf.Variable(value) for value in ([-1.0, 1.0], [0.0, 0.0], [0.0, 0.0]))

@tf.function
def step():
    with tf.GradientTape() as tape:
        log_density = -0.5 * tf.square((data - mu) / tf.exp(log_scale)) - log_scale + tf.nn.log_softmax(weights)
        loss = -tf.reduce_mean(tf.reduce_logsumexp(log_density, axis=1))
    for variable, gradient in zip([mu, log_scale, weights], tape.gradient(loss, [mu, log_scale, weights])):
        variable.assign_sub(0.5 * gradient)
    return loss

for _ in range(1001):
    step()
"""

FLATTENED = """
a, b = tf.Variable(3.0, name="a"), tf.Variable(1.0, name="b")

@tf.function
def step(rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(b * tf.tanh(a * tf.abs(x)) - 7.0 - x))
    for variable, gradient in zip([a, b], tape.gradient(loss, [a, b])):
        variable.assign_sub(rate * gradient)
    return loss

step(tf.constant(0.0))
a.assign(10000.0)
for _ in range(300):
    step(tf.constant(0.3))
"""

ADVANTAGES = (
    NETWORK
    + """
@tf.function
def train_step(x, advantage):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(tf.math.log_sigmoid(model(x)) * advantage)
    gradients = tape.gradient(loss, model.trainable_variables)
    update(gradients)
    return loss

for _ in range(2):
    train_step(x, y[:, 0])
"""
)

IMAGE_AS_INTEGERS = (
    NETWORK
    + """
@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        image = tf.reshape(tf.sigmoid(model(tf.repeat(x, 32, 0))), [1, 16, 16, 1])
        pixels = tf.image.convert_image_dtype(image, tf.uint8)
        loss = 1.0 - tf.reduce_mean(tf.image.ssim(pixels, 255 - pixels, max_val=255))
    gradients = tape.gradient(loss, model.trainable_variables)
    return loss

for _ in range(2):
    train_step(x, y)
"""
)

REFUSED = """
w = tf.Variable(tf.ones([5, 3]), name="w")
rows = tf.sparse.from_dense(tf.constant([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0]]))
for _ in range(2):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sparse.reduce_max(rows * tf.reduce_sum(w, 1), axis=1))
    try:
        tape.gradient(loss, [w])
    except LookupError:
        pass
"""

REFUSED_THEN_ANOTHER = """
w = tf.Variable(tf.ones([5, 3]), name="w")
rows = tf.sparse.from_dense(tf.constant([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0]]))

@tf.function
def train_step():
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(tf.sparse.reduce_max(rows * tf.reduce_sum(w, 1), axis=1))
        other = tf.reduce_sum(tf.square(w))
    try:
        gradient = tape.gradient(loss, w)
    except LookupError:
        gradient = tape.gradient(other, w)
    w.assign_sub(0.1 * gradient)

for _ in range(3):
    train_step()
"""

MODULE = """
class Projection(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.ones([3, 4]), name="w")

    def __call__(self, x):
        return tf.tanh(x @ self.w)

class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.projection, self.head = Projection(), keras.layers.Dense(1)

    def call(self, x):
        return self.head(self.projection(x))

net = Net()
net.compile("sgd", "mse")
net.fit(x, y, epochs=2, verbose=0)
"""


def recorded(body: str, directory: Path, **options: Any) -> Report:
    """What is said about the last recorded step of a program's only run; it must raise no warning."""
    directory.mkdir()
    program = directory / "program.py"
    program.write_text(HEAD + body)
    recorder = Recorded(lambda: str(directory / "logs"), options)
    recorder.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            exec(compile(program.read_text(), str(program), "exec"), vars(ModuleType("program")))
    finally:
        recorder.stop()
        keras.backend.clear_session()
    [name] = recorder.names
    return tb_gradflow.open_log(directory / "logs" / name).report()


def repaired(body: str, report: Report, directory: Path) -> Report:
    """The same after the edit of the first finding."""
    edit = report.findings[0].edit
    assert edit is not None
    lines = (HEAD + body).split("\n")
    assert lines[edit.line - 1 : edit.end_line] == edit.before.split("\n")
    lines[edit.line - 1 : edit.end_line] = edit.after.split("\n")
    return recorded("\n".join(lines).removeprefix(HEAD), directory)


SOME_ROWS = """
table, scale = tf.Variable(tf.random.normal([5, 3]), name="table"), tf.Variable(2.0, name="scale")
opt = keras.optimizers.SGD(0.1)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(scale * PART - 1.0))
    opt.apply_gradients(zip(tape.gradient(loss, [table, scale]), [table, scale]))
"""

CURVATURE = (
    NETWORK
    + """
for _ in range(3):
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            energy = tf.reduce_sum(model(x))
        force = first.gradient(energy, x)
    curvature = second.gradient(force, x)
"""
)

PENALISED_AND_LOGGED = (
    NETWORK
    + """
for step in range(2):
    with tf.GradientTape() as tape:
        prediction = model(x)
        size = np.square(prediction.numpy())
        loss = tf.reduce_mean(tf.square(prediction - y)) + 0.1 * tf.reduce_mean(size)
    update(tape.gradient(loss, model.trainable_variables))
    print(step, float(loss))
"""
)

LOOK_AT_GRADIENTS = "gradients = tape.gradient(loss, model.trainable_variables)"

GROWING = """
dictionary = tf.Variable(tf.random.normal([2, 3]), shape=[None, 3], name="dictionary")
for _ in range(3):
    with tf.GradientTape() as tape:
        codes = x @ tf.transpose(dictionary)
        loss = tf.reduce_mean(tf.square(codes @ dictionary - x))
    dictionary.assign_sub(0.1 * tape.gradient(loss, dictionary))
    dictionary.assign(tf.concat([dictionary, tf.random.normal([1, 3])], 0))
"""

TURN_BY_TURN = """
maker = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)], name="maker")
judge = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)], name="judge")
first, second = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1)
for _ in range(3):
    with tf.GradientTape() as of_maker, tf.GradientTape() as of_judge:
        verdict = judge(maker(x))
        made = tf.reduce_mean(tf.square(verdict - 1.0))
        judged = tf.reduce_mean(tf.square(JUDGED(verdict) - y))
    gradients = of_maker.gradient(made, maker.trainable_variables)
    first.apply_gradients(zip(gradients, maker.trainable_variables))
    gradients = of_judge.gradient(judged, judge.trainable_variables)
    if gradients[0] is not None:
        second.apply_gradients(zip(gradients, judge.trainable_variables))
"""

SAID: dict[str, tuple[str, str, str, str]] = {
    "the forward pass before the tape": (
        FORWARD_BEFORE,
        "tape_scope",
        "`pred = model(x)` (line 16) ran before the `with` block",
        "Move `pred = model(x)` into the `with` block.",
    ),
    "the loss before the tape": (
        LOSS_BEFORE,
        "tape_scope",
        "`loss = tf.reduce_sum(tf.square(w - 1.0))` (line 11) ran before the `with` block",
        "Move `loss = tf.reduce_sum(tf.square(w - 1.0))` into the `with` block.",
    ),
    "an earlier loss in a lambda with a name": (
        NAMED_CLOSURE,
        "tape_scope",
        "the loss was computed before `minimize` called the function",
        "Compute the loss inside that function",
    ),
    "an episode before the tape": (
        EPISODE_BEFORE,
        "tape_scope",
        "`probs = model(state[None])` (line 14) ran before the `with` block",
        "Open the `with` block before the loop that contains `probs = model(state[None])`.",
    ),
    "a second derivative of what its tape does not watch": (
        SECOND_DERIVATIVE,
        "tape_not_watching",
        "`x` gets no gradient: a gradient was requested for it (program.py:22), but the tape does not watch it.",
        "Add `outer.watch(x)` at the start of the `with` block.",
    ),
    "the same in a function": (
        SECOND_DERIVATIVE.replace("def train_step", "@tf.function\ndef train_step"),
        "tape_not_watching",
        "`x` gets no gradient: a gradient was requested for it (program.py:23), but the tape does not watch it.",
        "Add `outer.watch(x)` at the start of the `with` block.",
    ),
    "the mean after the tape": (
        MEAN_AFTER,
        "tape_scope",
        "`loss = tf.reduce_mean(errors)` (line 19) ran after the `with` block",
        "Move `loss = tf.reduce_mean(errors)` into the `with` block.",
    ),
    "a tape that is reset": (
        RESET,
        "tape_scope",
        "`reset()` made the tape (program.py:20) forget what it had recorded",
        "Remove the call of `reset()`",
    ),
    "the mean in the request, by its name": (
        IN_THE_REQUEST.replace("(tf.add_n(losses) / 2.0, model", "(target=tf.add_n(losses) / 2.0, sources=model"),
        "tape_scope",
        "`tf.add_n(losses) / 2.0` is computed in the call of `gradient`, after the `with` block",
        "Compute it in the `with` block, `loss = tf.add_n(losses) / 2.0`",
    ),
    "the mean in the request": (
        IN_THE_REQUEST,
        "tape_scope",
        "`tf.add_n(losses) / 2.0` is computed in the call of `gradient`, after the `with` block",
        "Compute it in the `with` block, `loss = tf.add_n(losses) / 2.0`",
    ),
    "an image that becomes a tensor, which the optimizer refuses": (
        CLIPPED_IMAGE,
        "variable_rebound",
        "`image` was a variable and has been overwritten with a tensor",
        "`image.assign(tf.clip_by_value(image, 0.0, 1.0))` instead of `image = tf.clip_by_value(image, 0.0, 1.0)`.",
    ),
    "a logarithm by NumPy": (
        LOG_BY_NUMPY,
        "python_escape",
        "leaves TensorFlow at `np.log` (program.py:16). NumPy returns plain numbers, which carry no gradient.",
        "Stay in TensorFlow: `log_chances.append(tf.math.log(chances[row, 1]))`.",
    ),
    "a rounded value that a minimum chooses": (
        ROUNDED_AND_CHOSEN,
        "nondiff_rounding",
        "`tf.minimum` (program.py:15) takes the rounded value in every element, so the other side gets no gradient",
        "`v + tf.stop_gradient(tf.floor(v) - v)`",
    ),
    "two variables that become tensors": (
        TWO_REBOUND,
        "variable_rebound",
        "`w` and `b` get no gradient: they were variables and have been overwritten with tensors",
        "Change each variable in place",
    ),
    "two variables that become tensors at once": (
        TWO_REBOUND_AT_ONCE,
        "variable_rebound",
        "`w` and `b` get no gradient: they were variables and have been overwritten with tensors",
        "Change each variable in place",
    ),
    "variables in a list that become tensors": (
        LISTED,
        "variable_rebound",
        "`ws[0]` and `ws[1]` get no gradient: they were variables and have been overwritten with tensors",
        "`ws[i].assign(ws[i] - 0.1 * gradients[i])` instead of `ws[i] = ws[i] - 0.1 * gradients[i]`.",
    ),
    "a list of variables that becomes one of tensors": (
        LISTED_AT_ONCE,
        "variable_rebound",
        "`ws[0]` and `ws[1]` get no gradient: they were variables and have been overwritten with tensors",
        "`for w, g in zip(ws, gradients): w.assign(w - 0.1 * g)` instead of `ws = [w - 0.1 * g for",
    ),
    "two variables that become tensors on a line": (
        TWO_REBOUND_ON_A_LINE,
        "variable_rebound",
        "`w` and `b` get no gradient: they were variables and have been overwritten with tensors",
        "Change each variable in place",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_a_loop_does_wrong_is_said_and_the_edit_repairs_it(name: str, tmp_path: Path) -> None:
    body, cause, message, fix = SAID[name]

    report = recorded(body, tmp_path / "broken")

    [finding] = report.findings
    assert (finding.cause, finding.severity) == (cause, "error")
    assert message in finding.message
    assert fix in finding.fix
    assert repaired(body, report, tmp_path / "fixed").healthy


@pytest.mark.parametrize("body", [BESIDE_A_VARIABLE, BESIDE_ONE_IN_A_LIST], ids=["in a dictionary", "in a list"])
def test_a_tensor_beside_a_variable_was_none(body: str, tmp_path: Path) -> None:
    [finding] = recorded(body, tmp_path / "broken").findings

    assert finding.cause == "tape_not_watching"


def test_both_roots_of_zero_are_bounded_by_one_edit(tmp_path: Path) -> None:
    report = recorded(DEVIATIONS_OF_BOTH_VIEWS, tmp_path / "broken")
    assert [each.cause for each in report.findings] == ["sqrt_at_zero"]

    after = repaired(DEVIATIONS_OF_BOTH_VIEWS, report, tmp_path / "fixed")
    assert {each.status for each in after.variables.values()} <= {"connected", "zero"}


@pytest.mark.parametrize(
    "body", [LIKELIHOOD, REGRESSION, MIXTURE], ids=["a likelihood", "a regression", "a mixture of distributions"]
)
def test_the_minimum_of_a_loss_that_is_not_zero_is_no_vanishing_gradient(body: str, tmp_path: Path) -> None:
    """Nor is an offset without effect there, only because the gradients of the rows cancel."""
    report = recorded(body, tmp_path / "trained", update_freq=100)

    assert {"vanishing", "zero"} & {each.status for each in report.variables.values()}
    assert report.healthy
    found = [each for each in report.findings if each.cause in ("vanishing_depth", "zero_gradient")]
    assert found
    assert all("as it does at a minimum" in each.message and each.edit is None for each in found)
    assert {each.cause for each in report.findings} <= {"vanishing_depth", "zero_gradient", "gradient_not_applied"}


def test_a_unit_that_saturates_in_training_is_still_reported(tmp_path: Path) -> None:
    report = recorded(FLATTENED, tmp_path / "trained", update_freq=100)

    assert not report.healthy
    assert report.findings[0].variables == ("a",)


@pytest.mark.parametrize("written", ["lambda: loss", "loss=lambda: loss"], ids=["as the first argument", "by its name"])
def test_a_function_for_minimize_that_returns_an_earlier_loss(written: str, tmp_path: Path) -> None:
    [finding] = recorded(CLOSURE.replace("lambda: loss", written), tmp_path / "broken").findings

    assert finding.cause == "tape_scope"
    assert "the loss was computed before `minimize` called the function" in finding.message


def test_the_bias_of_a_softmax_is_not_harmless_where_the_gradients_of_two_calls_cancel(tmp_path: Path) -> None:
    report = recorded(OLD_POLICY, tmp_path / "broken")

    [finding] = report.findings
    assert finding.cause == "gradient_cancellation"
    assert set(finding.variables) == set(report.variables)
    assert "tf.stop_gradient(tf.math.log(old))" in finding.fix


def test_a_loss_that_numpy_computes_needs_more_than_the_line_where_the_value_leaves(tmp_path: Path) -> None:
    [finding] = recorded(LOSS_OF_PYTHON, tmp_path / "broken").findings

    assert finding.cause == "python_escape"
    assert "Compute what follows from it, up to the loss, with TensorFlow functions as well" in finding.fix


def test_integers_at_which_a_variable_is_written_are_taken_by_the_assignment(tmp_path: Path) -> None:
    [finding] = recorded(PASTED, tmp_path / "broken").findings

    assert finding.cause == "integer_dtype"
    assert finding.fix.startswith("`canvas[first[0]:, first[1]:].assign` (program.py:14) accepts only integers there")


def test_a_loss_of_a_copy_of_the_network(tmp_path: Path) -> None:
    error, info = recorded(OF_THE_COPY, tmp_path / "broken").findings

    assert (error.cause, info.cause, info.severity) == ("output_not_used", "untracked_variable", "info")
    assert re.search("another network with the same shapes, that of `target/dense_?[0-9]*/kernel`", error.message)


def test_advantages_of_another_rank_mix_the_rows(tmp_path: Path) -> None:
    [finding] = recorded(ADVANTAGES, tmp_path / "broken").findings

    assert (finding.cause, finding.severity) == ("labels_broadcast", "warning")
    assert finding.source is not None
    assert "advantage)" in finding.source.code


def test_a_similarity_is_not_passed_off_as_the_image_that_it_casts(tmp_path: Path) -> None:
    """`image + stop_gradient(ssim(…) - image)` would have a gradient, though that of no similarity."""
    [finding] = recorded(IMAGE_AS_INTEGERS, tmp_path / "broken").findings

    assert finding.cause == "integer_dtype"
    assert finding.edit is None


def test_a_gradient_that_the_tape_refuses_does_not_end_the_recording(tmp_path: Path) -> None:
    [finding] = recorded(REFUSED, tmp_path / "alone").findings
    assert finding.cause == "no_gradient_registered"

    report = recorded(REFUSED_THEN_ANOTHER, tmp_path / "another")
    assert report.variables["w"].status == "connected"


@pytest.mark.parametrize(
    "part",
    ["tf.gather(table, [4, 1])", "tf.nn.embedding_lookup(table, [[0, 1, 2, 2]])", "tf.gather_nd(table, [[3, 1]])"],
)
def test_a_variable_of_which_a_step_reads_some_rows_only_is_recorded(part: str, tmp_path: Path) -> None:
    report = recorded(SOME_ROWS.replace("PART", part), tmp_path / "rows")

    assert report.healthy
    assert {name: each.status for name, each in report.variables.items()} == {
        "table": "connected",
        "scale": "connected",
    }


def test_derivatives_with_respect_to_the_inputs_train_nothing(tmp_path: Path) -> None:
    """A first derivative alone was never reported; the tape of a second one is no training step either."""
    report = recorded(CURVATURE, tmp_path / "curvature")

    assert report.healthy
    assert not report.findings


def test_a_term_that_numpy_computes_beside_another_trains_nothing(tmp_path: Path) -> None:
    [finding] = recorded(PENALISED_AND_LOGGED, tmp_path / "logged").findings

    assert (finding.cause, finding.severity) == ("python_escape", "warning")
    assert "Added to the loss, it trains nothing." in finding.message
    assert finding.edit is not None
    assert "numpy" not in finding.edit.after


def test_what_is_printed_after_the_gradient_is_left_as_it_is(tmp_path: Path) -> None:
    body = PENALISED_AND_LOGGED.replace("tf.reduce_mean(tf.square(prediction - y)) + ", "")
    body = body.replace("update(tape.gradient(loss, model.trainable_variables))", LOOK_AT_GRADIENTS)
    [finding] = recorded(body, tmp_path / "logged").findings

    assert (finding.cause, finding.severity) == ("python_escape", "error")
    assert finding.edit is not None
    assert "print" not in finding.edit.before
    assert "numpy" not in finding.edit.after


def test_a_variable_that_grows_is_recorded(tmp_path: Path) -> None:
    """How far it moves is not known: its values before and after a step have different shapes."""
    report = recorded(GROWING, tmp_path / "growing")

    assert report.healthy
    assert report.variables["dictionary"].status == "connected"


def test_networks_that_are_updated_one_after_the_other_are_one_step(tmp_path: Path) -> None:
    """The second loss is recorded as well, although an optimizer has updated all that the first one trains."""
    healthy = recorded(TURN_BY_TURN.replace("JUDGED", ""), tmp_path / "healthy")
    assert {each.status for each in healthy.variables.values()} == {"connected"}
    assert not healthy.findings

    [finding] = recorded(TURN_BY_TURN.replace("JUDGED", "tf.round"), tmp_path / "broken").findings
    assert (finding.cause, finding.severity) == ("nondiff_rounding", "error")
    assert all(name.startswith("judge/") for name in finding.variables)


def test_the_weights_of_a_module_are_advised_to_become_those_of_a_layer(tmp_path: Path) -> None:
    [finding] = recorded(MODULE, tmp_path / "broken").findings

    assert (finding.cause, finding.severity) == ("untracked_variable", "warning")
    assert "`Projection` is not a layer" in finding.message
    assert "`class Projection(keras.layers.Layer)`" in finding.fix


COMPILED_FORWARD = """
w = tf.Variable(2.0, name="w")

@tf.function
def forward(x):
    return w * x

opt = keras.optimizers.SGD(0.02)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((forward(x) - 1.0) ** 2)
    gradients = tape.gradient(loss, [w])
    opt.apply_gradients(zip(gradients, [w]))
"""


def test_tensors_of_a_compiled_function_are_not_those_of_the_step_with_the_same_names(tmp_path: Path) -> None:
    """What the function and the optimizer read is `ReadVariableOp:0` for both."""
    report = recorded(COMPILED_FORWARD, tmp_path / "a")

    assert report.step == 2
    assert report.summary == "Healthy: the gradient reaches the trainable variable."


RAISES = """
dense = keras.layers.Dense(4, name="dense")
with tf.GradientTape() as tape:
    q, _ = tf.linalg.qr(tf.reshape(dense(tf.reshape(x, [4, 6, 1])), [4, 6, 4]), full_matrices=True)
    loss = tf.reduce_mean(tf.square(q))
tape.gradient(loss, dense.trainable_variables)
"""

RAISES_LATER = """
weights = tf.Variable(tf.ones([8]), name="weights")
edges = tf.constant([[row, (row + 1) % 8] for row in range(8)], tf.int64)
with tf.GradientTape() as tape:
    adjacency = tf.sparse.reorder(tf.SparseTensor(edges, weights, (8, 8))) * 0.5
    loss = tf.reduce_mean(tf.square(tf.sparse.sparse_dense_matmul(adjacency, x)))
tape.gradient(loss, [weights])
"""


# TensorFlow's own errors: the gradient of `qr` refuses these arguments whatever the values are.
@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        (RAISES, NotImplementedError, "the gradient function of `tf.linalg.qr`"),
        (RAISES_LATER, tf.errors.InvalidArgumentError, "params must be at least a vector"),
    ],
    ids=["with these arguments", "with these values"],
)
def test_an_error_of_a_gradient_function_is_told_as_it_was_raised(
    body: str, error: type[Exception], told: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as raised:
        recorded(body, tmp_path / "a")
    [name] = [each.name for each in (tmp_path / "a" / "logs").iterdir()]

    [finding] = tb_gradflow.open_log(tmp_path / "a" / "logs" / name).report().findings

    assert (finding.cause, finding.severity) == ("not_measured", "error")
    assert told in finding.message
    assert f"raises {raised.type.__name__}: " in finding.message


GRADIENTS_SUMMED = (
    NETWORK
    + """
total = None
for number in range(72):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    total = gradients if total is None else [one + other for one, other in zip(total, gradients)]
    if number % 24 == 23:
        APPLY
        total = None
"""
)


@pytest.mark.parametrize(("apply", "severity"), [("pass", "warning"), ("update(total)", None)])
def test_gradients_that_are_never_applied_are_told_from_sums_over_many_steps(
    apply: str, severity: str | None, tmp_path: Path
) -> None:
    report = recorded(GRADIENTS_SUMMED.replace("APPLY", apply), tmp_path / "run", update_freq="auto")

    assert [each.severity for each in report.findings if each.cause == "gradient_not_applied"] == (
        [severity] if severity else []
    )


NAN_OF_DATA = """
import keras
import tensorflow as tf

dense = keras.layers.Dense(1, name="dense")
x = tf.random.stateless_normal((16, 4), (1, 2))
labels = tf.zeros((16, 1))
chosen = tf.cast(labels > 0.5, tf.float32)
{count}
with tf.GradientTape() as tape:
    weight = {weight}
    loss = tf.reduce_mean(weight * tf.square(dense(x) - labels))
tape.gradient(loss, dense.trainable_variables)
"""


@pytest.mark.parametrize(
    ("count", "weight"),
    [
        ("", "chosen / tf.reduce_sum(chosen)"),
        ("count = tf.reduce_sum(chosen)", "count / count"),
        ("dense(x)", "tf.function(lambda given: given / tf.reduce_sum(given))(chosen)"),
    ],
    ids=["a mask", "a number", "compiled"],
)
def test_nan_that_is_made_of_data_alone_is_told_where_it_is_made(count: str, weight: str, tmp_path: Path) -> None:
    """All elements of the data are equal, as those of a constant are."""
    [finding] = recorded(NAN_OF_DATA.format(count=count, weight=weight), tmp_path / "broken").findings

    assert finding.cause == "zero_over_zero"
    assert finding.source is not None
    assert finding.source.code.startswith("weight = ")


BLOCKS = """
import keras
import tensorflow as tf


class Block(keras.layers.Layer):
    def __init__(self, **named):
        super().__init__(**named)
        self.dense = keras.layers.Dense(4)
        self.norm = keras.layers.LayerNormalization()

    def call(self, x):
        h = self.dense(x)
        return self.norm(tf.nn.tanh(h))


class Network(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = Block(name="first")
        self.second = Block(name="second")
        self.out = keras.layers.Dense(1)

    def call(self, x):
        h = self.first(x)
        {call}
        return self.out(h)


network = Network()
x = tf.random.stateless_normal((8, 4), (1, 2))
network(x)
"""

EAGER_STEP = """
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(tf.square(network(x, training=True) - 1.0))
tape.gradient(loss, network.trainable_variables)
"""

FIT = """
network.compile("sgd", "mse")
network.fit(x, tf.ones((8, 1)), verbose=0)
"""


@pytest.mark.parametrize("step", [EAGER_STEP, FIT], ids=["eager", "fit"])
@pytest.mark.parametrize("call", ["self.second(h)", "unused = self.second(h)"])
@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_a_layer_whose_output_is_dropped_is_told_where_it_is_called(call: str, step: str, tmp_path: Path) -> None:
    [finding] = recorded(BLOCKS.format(call=call) + step, tmp_path / "broken").findings

    assert (finding.cause, finding.severity, len(finding.variables)) == ("output_not_used", "error", 4)
    assert finding.source is not None
    assert finding.source.code == call
    assert "what `second` (program.py:" in finding.message
    kept = None if finding.edit is None else finding.edit.after.strip()
    assert kept == ("h = self.second(h)" if call == "self.second(h)" else None)


def test_a_value_that_a_used_layer_drops_is_told_in_it(tmp_path: Path) -> None:
    body = BLOCKS.format(call="h = self.second(h)").replace("h = self.dense(x)", "h, _ = x, self.dense(x)")

    first, *_ = recorded(body + EAGER_STEP, tmp_path / "broken").findings

    assert first.cause == "output_not_used"
    assert first.source is not None
    assert first.source.code == "h, _ = x, self.dense(x)"
