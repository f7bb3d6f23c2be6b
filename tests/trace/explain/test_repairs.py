"""Edits that `explain(..., try_fixes=True)` offers for programs as people write them: run on the step, they repair."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

HEAD = """
import tensorflow as tf

w = tf.Variable([0.2, 1.4, 2.6], name="w")
table = tf.constant([[0.0], [1.0], [4.0], [9.0]])
picture = tf.random.stateless_uniform((1, 6, 6, 3), (1, 2), 0.1, 0.9)
"""

# Body of a program, and what its edit says.
PROGRAMS = {
    "a sum of what a condition leaves": (
        "def loss():\n    return tf.reduce_sum(tf.boolean_mask(tf.constant([1.0, 2.0, 3.0]), w > 1.0))\n",
        "tf.constant([1.0, 2.0, 3.0]) * tf.sigmoid((w - 1.0) / 0.1)",
    ),
    "a mean of what a condition leaves": (
        "def loss():\n    x = tf.constant([1.0, 2.0, 3.0])\n    return tf.reduce_mean(x[x > w[1]])\n",
        "tf.math.divide_no_nan(tf.reduce_sum(x * weights), tf.reduce_sum(weights))",
    ),
    "rows at places that are searched": (
        "def loss():\n    bucket = tf.searchsorted([0.5, 1.5, 2.5], w)\n"
        "    return tf.reduce_sum(tf.gather(table, bucket))\n",
        "share[..., tf.newaxis] * tf.gather(table, low + 1)",
    ),
    "a mask of the largest": (
        "def loss():\n    _, chosen = tf.math.top_k(w, 2)\n"
        "    mask = tf.reduce_sum(tf.one_hot(chosen, 3), axis=0)\n"
        "    return tf.reduce_sum(mask * tf.constant([3.0, 1.0, 2.0]))\n",
        "mask = soft + tf.stop_gradient(tf.reduce_sum(tf.one_hot(chosen, 3), axis=0) - soft)",
    ),
    "a reward looked up by a draw": (
        "def loss():\n    action = tf.random.categorical(w[None], 1)\n"
        "    return tf.reduce_mean(tf.gather(tf.constant([0.1, 1.0, -0.5]), tf.squeeze(action, -1)))\n",
        "tf.tensordot(tf.nn.softmax(w[None], axis=-1), tf.constant([0.1, 1.0, -0.5]), axes=1)",
    ),
    "a difference of positions": (
        "def loss():\n"
        "    far = tf.cast(tf.subtract(tf.argmax(w, 0), tf.argmax(tf.constant([0.0, 1.0]), 0)), tf.float32)\n"
        "    return tf.square(far)\n",
        "tf.cast(tf.argmax(tf.constant([0.0, 1.0]), 0), tf.float32)",
    ),
    "integers between two functions": (
        "def sent(x):\n    return tf.cast(x * 9.0, tf.int32)\n"
        "def received(x):\n    return tf.cast(x, tf.float32) / 9.0\n"
        "def loss():\n    return tf.reduce_sum(received(sent(w)))\n",
        "value + tf.stop_gradient(tf.cast(tf.cast(value, tf.int32), value.dtype) - value)",
    ),
    "a number that is printed and read": (
        "def loss():\n    text = tf.strings.as_string(w, precision=1)\n"
        "    return tf.reduce_sum(tf.strings.to_number(text) * 2.0)\n",
        "w + tf.stop_gradient(tf.strings.to_number(text) - w)",
    ),
    "rounding in several lines": (
        "def loss():\n    hit = tf.reduce_sum(tf.round(w * 2.0))\n"
        "    missed = tf.reduce_sum(tf.round(1.0 - w))\n    return hit / (hit + missed + 0.5)\n",
        "missed = tf.reduce_sum(soft + tf.stop_gradient(tf.round(soft) - soft))",
    ),
    "a hue": (
        "def loss():\n    return tf.reduce_mean(tf.square(tf.image.adjust_hue(picture, w[0]) - 0.5))\n",
        "tf.image.rgb_to_hsv(picture)",
    ),
    "a glimpse": (
        "def loss():\n    seen = tf.image.extract_glimpse(picture, (2, 2), w[None, :2] / 9.0)\n"
        "    return tf.reduce_mean(tf.square(seen))\n",
        'tf.einsum("bir,bjc,brcd->bijd", by_row, by_column, picture)',
    ),
    "both branches of a choice": (
        "turned = lambda x: tf.where(x < 1.4, 1.0 / (1.4 - x), tf.math.log(x - 0.2))\n"
        "def loss():\n    return tf.reduce_sum(turned(w))\n",
        "tf.math.log(tf.where(x < 1.4, tf.ones_like(x - 0.2), x - 0.2))",
    ),
    "one minus a sigmoid": (
        "def loss():\n    p = tf.sigmoid(w * 100.0)\n    return -tf.reduce_mean(tf.math.log(1.0 - p))\n",
        "tf.math.log_sigmoid(-(w * 100.0))",
    ),
    "euclidean norms": (
        "def loss():\n    far = w[:, None] - tf.constant([[0.2], [1.0], [2.0]])\n"
        "    return tf.reduce_sum(tf.norm(far, ord='euclidean', axis=1, name='far'))\n",
        "tf.sqrt(tf.maximum(tf.reduce_sum(tf.square(far), axis=1), 1e-12))",
    ),
    "minus infinity by a name": (
        "HIDDEN = float('-inf')\ndef loss():\n    rows = tf.stack([w, w])\n"
        "    scores = tf.where(tf.constant([[True] * 3, [False] * 3]), rows, HIDDEN)\n"
        "    return tf.reduce_sum(tf.nn.softmax(scores) * rows)\n",
        "rows, -1e9)",
    ),
    "counts of events": (
        "def loss():\n    return tf.reduce_mean(tf.square(tf.random.poisson([8], tf.exp(w)) - 3.0))\n",
        "tf.sqrt(rate) * tf.random.normal(tf.concat([[8], tf.shape(rate)], axis=0))",
    ),
    "a choice that another method takes as a one-hot vector": (
        "class Router:\n    def choose(self, scores):\n        return tf.argmax(scores, axis=-1)\n\n"
        "    def gates(self, chosen):\n        return tf.one_hot(chosen, 3)\n\n"
        "router = Router()\n"
        "def loss():\n    gates = router.gates(router.choose(w * 2.0))\n"
        "    return tf.reduce_sum(gates * tf.constant([3.0, 1.0, 2.0]))\n",
        "tf.one_hot(tf.argmax(scores, axis=-1), scores.shape[-1], dtype=scores.dtype) - soft)\n\n"
        "    def gates(self, chosen):\n        return chosen",
    ),
    "a choice that another method looks a row up with": (
        "class Words:\n    def choose(self, logits):\n        word = tf.argmax(logits, -1)\n        return word\n\n"
        "    def embedded(self, word):\n        return tf.gather(table[:3], word)\n\n"
        "words = Words()\n"
        "def loss():\n    chosen = words.choose(tf.nn.softmax(w))\n    return tf.reduce_sum(words.embedded(chosen))\n",
        "return tf.tensordot(word, table[:3], axes=1)",
    ),
    "a value that another method reads back": (
        "class Net:\n    def __init__(self):\n        self.state = tf.Variable(tf.ones(3), trainable=False)\n\n"
        "    def advance(self, x):\n        self.state.assign(tf.tanh(x + self.state * w))\n\n"
        "    def told(self):\n        return self.state * 2.0\n\n"
        "net = Net()\n"
        "def loss():\n    net.advance(0.5)\n    return tf.reduce_sum(tf.square(net.told()))\n",
        "self.state.assign(self.state_now)\n\n    def told(self):\n        return self.state_now * 2.0",
    ),
    "ranks": (
        "def loss():\n    ranks = tf.argsort(tf.argsort(w * 1.0), axis=-1)\n"
        "    return tf.reduce_sum(tf.abs(tf.cast(ranks - tf.constant([2, 0, 1]), tf.float32)))\n",
        "tf.cast(ranks - tf.cast(tf.constant([2, 0, 1]), tf.float32), tf.float32)",
    ),
    "a picture read at learned places": (
        "plane = tf.reshape(tf.range(36.0), (6, 6))\n"
        "def loss():\n    places = tf.stack([w, 4.0 - w], axis=-1)\n"
        "    return tf.reduce_mean(tf.square(tf.gather_nd(plane, tf.cast(places, tf.int32)) - 30.0))\n",
        "beside = lambda i, j: tf.gather_nd(plane, low + [i, j])",
    ),
    "how often the right class is the most probable one": (
        "x, y = tf.constant([[1.0, 0.2, 0.3], [0.1, 2.0, 1.0]]), tf.constant([0, 2])\n"
        "def loss():\n    right = tf.equal(tf.argmax(x * w, axis=-1, output_type=tf.int32), y)\n"
        "    return 1.0 - tf.reduce_mean(tf.cast(right, tf.float32))\n",
        "tf.nn.softmax(scores, axis=-1) * tf.one_hot(tf.cast(y, tf.int32), scores.shape[-1])",
    ),
    "both logarithms of a statement": (
        "def loss():\n    p = tf.stack([tf.nn.relu(w[0] - 1.0), tf.minimum(w[2], 1.0), tf.sigmoid(w[1])])\n"
        "    return -tf.reduce_sum(tf.math.log(p) + tf.math.log(1.0 - p))\n",
        "tf.math.log(tf.maximum(p, 1e-7)) + tf.math.log(tf.maximum(1.0 - p, 1e-7))",
    ),
    "positions as numbers": (
        "def loss():\n    total = 0.0\n    for i in tf.range(4):\n"
        "        total += tf.cast(tf.cast(i, tf.float32) < w[2], tf.float32)\n"
        "    return tf.square(total - 1.0)\n",
        "total += tf.sigmoid((w[2] - tf.cast(i, tf.float32)) / ",
    ),
    "numbers collected in a list": (
        "def loss():\n    parts = []\n    for number in range(3):\n"
        "        parts.append(tf.sin(w[number] * 1.37).numpy())\n"
        "    return tf.reduce_sum(tf.convert_to_tensor(parts))\n",
        "parts.append(tf.sin(w[number] * 1.37))",
    ),
}


def tried(loss: Any, *variables: Any) -> Any:
    return tb_gradflow.explain(loss, variables=list(variables), try_fixes=True, terms=False).findings[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_edit_repairs(name: str, loaded: Any) -> None:
    body, written = PROGRAMS[name]
    program = loaded(HEAD + body)

    finding = tried(program.loss, program.w)

    assert finding.edit is not None
    assert written in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works


DRAWS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "of a class": (
        "rewards = tf.constant([0.1, 1.0, -0.5])\n"
        "def loss():\n    logits = tf.tile(w[None], [4096, 1])\n"
        "    actions = tf.random.categorical(logits, 1)[:, 0]\n"
        "    return -tf.reduce_mean(tf.gather(rewards, actions))\n",
        lambda program: -tf.reduce_sum(tf.nn.softmax(program.w) * program.rewards),
    ),
    "of a coin": (
        "def loss():\n    p = tf.tile(tf.sigmoid(w)[None], [4096, 1])\n"
        "    on = tf.cast(tf.random.uniform(tf.shape(p)) < p, tf.float32)\n"
        "    return tf.reduce_mean(tf.square(tf.reduce_sum(on, axis=1) - 2.5))\n",
        lambda program: _of_three_coins(tf.sigmoid(program.w)),
    ),
}


def _of_three_coins(p: Any) -> Any:
    """The expected loss, over all outcomes."""
    total = tf.constant(0.0)
    for on in itertools.product((0.0, 1.0), repeat=3):
        chance = tf.reduce_prod(tf.where(tf.constant(on) > 0.5, p, 1.0 - p))
        total += chance * (sum(on) - 2.5) ** 2
    return total


@pytest.mark.parametrize("form", DRAWS)
def test_a_draw_that_stays_gets_the_gradient_of_what_is_to_be_expected(form: str, loaded: Any) -> None:
    """The score-function estimator is offered beside others, with what it costs, and is right on average."""
    body, expected = DRAWS[form]
    program = loaded(HEAD + body)

    finding = tried(program.loss, program.w)

    offered = [(finding.edit, finding.cost, finding.tried)]
    offered += [(each.edit, each.cost, each.tried) for each in finding.alternatives]
    [(edit, cost, outcome)] = [each for each in offered if "weight = tf.exp(log_probability" in each[0].after]
    assert len(offered) > 1
    assert "varies much more" in cost
    assert outcome is not None
    assert outcome.works
    text = Path(program.__file__).read_text(encoding="utf-8").split("\n")
    text[edit.line - 1 : edit.end_line] = edit.after.split("\n")
    edited = loaded("\n".join(text))
    tf.random.set_seed(7)
    with tf.GradientTape(persistent=True) as tape:
        losses = [edited.loss() for _ in range(8)]
        exact = expected(edited)
    estimates = np.array([tape.gradient(each, edited.w).numpy() for each in losses])
    error = estimates.std(axis=0) / np.sqrt(len(estimates)) + 1e-3
    assert np.all(np.abs(estimates.mean(axis=0) - tape.gradient(exact, edited.w).numpy()) < 5.0 * error)


def test_no_draw_is_weighted_where_the_rows_meet_before_their_mean(loaded: Any) -> None:
    program = loaded(
        HEAD + "def loss():\n    actions = tf.random.categorical(tf.tile(w[None], [64, 1]), 1)[:, 0]\n"
        "    rewards = tf.gather(tf.constant([0.1, 1.0, -0.5]), actions)\n"
        "    return tf.square(tf.reduce_mean(rewards) - 0.3)\n"
    )

    finding = tried(program.loss, program.w)

    assert finding.cause == "nondiff_sampling"
    offered = [finding.edit, *(each.edit for each in finding.alternatives)]
    assert not any("log_probability" in each.after for each in offered if each is not None)


def test_nothing_is_offered_where_python_counts(loaded: Any) -> None:
    program = loaded(
        HEAD + "import math\n"
        "def loss():\n    turns = int(math.sqrt(w[0].numpy()) * 10.0)\n    x = tf.constant(1.0)\n"
        "    for _ in range(turns):\n        x = x * 0.9\n    return x\n"
    )

    [finding] = tb_gradflow.explain(program.loss, variables=[program.w]).findings

    assert finding.cause == "python_escape"
    assert finding.edit is None


def test_a_loss_that_minimize_calls_too_late_is_computed_when_it_is_called(loaded: Any, tmp_path: Path) -> None:
    body = (
        "optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)\n"
        "def step(x):\n    told = tf.reduce_sum(w * x)\n    loss = tf.square(told - 1.0)\n"
        "    optimizer.minimize(lambda: loss, var_list=[w])\n    return loss\n"
    )
    program = loaded(HEAD + body)
    step = tb_gradflow.watch(tmp_path / "log", update_freq=1)(program.step)
    with pytest.raises(ValueError, match="No gradients provided"):
        step(tf.constant([1.0, 2.0, 3.0]))
    step.flush()

    [finding] = tb_gradflow.open_log(tmp_path / "log").report().findings

    assert finding.cause == "tape_scope"
    assert "before `minimize` called the function" in finding.message
    assert finding.edit is not None
    text = Path(program.__file__).read_text(encoding="utf-8").split("\n")
    text[finding.edit.line - 1 : finding.edit.end_line] = finding.edit.after.split("\n")
    edited = loaded("\n".join(text))
    losses = [float(edited.step(tf.constant([1.0, 0.2, 0.3]))) for _ in range(10)]
    assert losses[-1] < 0.01 * losses[0]


def test_an_edit_over_the_head_of_a_function_is_tried_in_both(loaded: Any) -> None:
    """The function that begins within the edited lines gets its new code as well."""
    program = loaded(HEAD + PROGRAMS["a choice that another method takes as a one-hot vector"][0])
    before = float(program.loss())

    finding = tried(program.loss, program.w)

    assert finding.tried.loss == (before, before)


def test_what_a_file_imports_of_tensorflow_is_used(loaded: Any) -> None:
    program = loaded(
        "from tensorflow import Variable, math\nw = Variable([0.0, 1.0], name='w')\n"
        "def loss():\n    return math.reduce_sum(math.sqrt(w))\n"
    )

    finding = tried(program.loss, program.w)

    assert "math.sqrt(math.maximum(w, 1e-12))" in finding.edit.after
    assert finding.tried.works


def test_a_fix_speaks_of_tensorflow_as_the_file_imports_it(loaded: Any) -> None:
    program = loaded(
        "import tensorflow as t\nw = t.Variable([0.2, 1.0], name='w')\n"
        "def loss():\n    return t.reduce_sum(t.cast(w > 0.5, t.float32))\n"
    )

    fix = tb_gradflow.explain(program.loss, variables=[program.w]).findings[0].fix

    assert "`t.sigmoid((w - 0.5) / 0.1)`" in fix
    assert "tf." not in fix


OUTER = """
import tensorflow as tf
def make():
    log_scale = tf.Variable(0.2, name="log_scale")
    offset = tf.Variable(0.1, name="offset")
    scale = tf.exp(log_scale)
    {inner}
    return loss, log_scale, offset
"""

INNER = {
    "function": "def loss(): return tf.square(scale * 3.0 + offset)",
    "lambda": "loss = lambda: tf.square(scale * 3.0 + offset)",
}


@pytest.mark.parametrize("form", INNER)
def test_a_function_that_reads_more_of_the_one_around_it_is_tried(form: str, loaded: Any) -> None:
    program = loaded(OUTER.format(inner=INNER[form]))
    loss, log_scale, offset = program.make()
    names, code = set(vars(program)), loss.__code__

    finding = tried(loss, log_scale, offset)

    assert "tf.exp(log_scale) * 3.0 + offset" in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works
    assert set(vars(program)) == names
    assert loss.__code__ is code
    np.testing.assert_allclose(float(finding.tried.loss[1]), float(loss()), rtol=1e-6)


def test_what_a_function_reads_more_is_not_guessed(loaded: Any) -> None:
    """Another variable of the same name: nobody knows which of the two the program means."""
    program = loaded(OUTER.format(inner=INNER["function"]))
    loss, log_scale, offset = program.make()
    program.log_scale = tf.Variable(7.0)

    finding = tried(loss, log_scale, offset)

    assert finding.tried is None
    assert "reads more variables of its enclosing function" in finding.not_tried


def test_rows_and_columns_are_sampled_as_the_op_samples(loaded: Any) -> None:
    """The edit of a projective transform leaves the loss as it is."""
    program = loaded(
        HEAD + "def loss():\n    theta = tf.concat([[1.1, 0.1], w[:1], [-0.1, 0.9], w[1:2], [0.01, 0.0]], 0)[None]\n"
        "    moved = tf.raw_ops.ImageProjectiveTransformV3(\n        images=picture, transforms=theta, "
        "output_shape=[5, 4], fill_value=0.0, interpolation='BILINEAR'\n    )\n"
        "    return tf.reduce_mean(tf.square(moved))\n"
    )

    finding = tried(program.loss, program.w)

    assert finding.tried.works
    before, after = finding.tried.loss
    assert after == pytest.approx(before, rel=1e-5)
