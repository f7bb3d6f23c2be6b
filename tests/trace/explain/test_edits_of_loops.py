"""Edits that are tried in the steps of eager loops when the program has ended."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.recorded import Recorded
from tb_gradflow.trace.eager.loop_body import Body
from tb_gradflow.trace.explain import outside
from tests.trace import edited_programs

HEAD = """
import keras, numpy as np, tensorflow as tf

keras.utils.set_random_seed(0)
X = np.random.rand(64, 8).astype("float32")
Y = (3 * X[:, :1] + X[:, 1:2]).astype("float32")


def network():
    return keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])

"""

FIRST = (
    HEAD
    + """
def called():
    model, optimizer = network(), keras.optimizers.Adam(0.01)

    def step(x, y):
        x = x / 2
        with tf.GradientTape() as tape:  # called
            out = tf.round(model(x))
            loss = tf.reduce_mean((out - y) ** 2) + 1e-3 * tf.reduce_sum(model.layers[-1].kernel ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    for _ in range(6):
        step(X, Y)


def apart():
    model, optimizer, losses = network(), keras.optimizers.Adam(0.01), []

    def differentiated(model, x, y):
        with tf.GradientTape() as tape:  # apart
            loss = tf.reduce_mean((tf.round(model(x)) - y) ** 2)
            loss += 1e-3 * tf.reduce_sum(model.layers[-1].kernel ** 2)
        return loss, tape.gradient(loss, model.trainable_variables)

    for _ in range(6):
        loss, gradients = differentiated(model, X, Y)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        losses.append(loss.numpy())


def raising():
    model, optimizer = network(), keras.optimizers.Adam(0.01)
    for x, y in tf.data.Dataset.from_tensor_slices((X, Y)).batch(32):
        with tf.GradientTape() as tape:  # raising
            loss = tf.reduce_mean((tf.round(model(x)) - y) ** 2)
        print(float(loss))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))


called()
apart()
try:
    raising()
except ValueError as error:
    assert "No gradients provided" in str(error)

w = tf.Variable(tf.zeros([8, 1]), name="w")
b = tf.Variable(0.5, name="b")
for _ in range(6):
    sums = [0.0, 0.0]
    with tf.GradientTape(persistent=True) as tape:  # by hand
        loss = tf.reduce_mean((X @ w + tf.floor(b) - Y) ** 2)
    dw = tape.gradient(loss, w)
    db = tape.gradient(loss, b)
    sums[0] = sums[0] + dw
    w.assign_sub(0.1 * sums[0])
    if db is not None:
        b.assign_sub(0.1 * db)
    del tape
"""
)

SECOND = (
    HEAD
    + """
class Trainer:
    def __init__(self):
        self.__w = tf.Variable(tf.random.normal([8, 1]), name="w")
        self.__s = tf.Variable(1.0, name="s")
        self.optimizer = keras.optimizers.SGD(0.1)

    def step(self):
        with tf.GradientTape() as tape:  # private
            loss = tf.reduce_mean((self.__s * tf.math.rint(X @ self.__w) - Y) ** 2)
        pairs = zip(tape.gradient(loss, [self.__w, self.__s]), [self.__w, self.__s])
        self.optimizer.apply_gradients([(gradient, variable) for gradient, variable in pairs if gradient is not None])


trainer = Trainer()
for _ in range(6):
    trainer.step()


generator, critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8)]), network()
of_generator, of_critic = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3)
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
for _ in range(6):
    with tf.GradientTape() as one, tf.GradientTape() as other:  # two
        made = tf.round(generator(tf.random.normal([32, 4])))
        on_made, on_real = critic(made), critic(X[:32])
        lost = cross_entropy(tf.ones_like(on_made), on_made)
        found = cross_entropy(tf.ones_like(on_real), on_real) + cross_entropy(tf.zeros_like(on_made), on_made)
    of_critic.apply_gradients(zip(other.gradient(found, critic.trainable_variables), critic.trainable_variables))
    try:
        of_generator.apply_gradients(
            zip(one.gradient(lost, generator.trainable_variables), generator.trainable_variables)
        )
    except ValueError:
        pass


def scored(value):
    with open("scores", "a") as file:
        file.write("scored ")
    return value


w = tf.Variable(tf.ones([8, 1]), name="w")
s = tf.Variable(1.0, name="s")
for _ in range(6):
    with tf.GradientTape() as tape:  # writes
        loss = tf.reduce_mean((s * tf.round(scored(X @ w)) - Y) ** 2)
    s.assign_sub(0.01 * tape.gradient(loss, [w, s])[1])

for _ in range(6):
    with tf.GradientTape() as tape:  # decides
        out = s * tf.round(X @ w)
        loss = tf.reduce_mean((out - Y) ** 2) if out[0, 0] > 0 else tf.reduce_mean(out - Y)
    s.assign_sub(0.01 * tape.gradient(loss, [w, s])[1])
"""
)


def tried_in(tmp_path: Path, program: str) -> dict[str, Any]:
    """The first finding of each loop, by the comment where its tape opens."""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "tb_gradflow.cli.main", "run", "--try-fixes", "--logdir", "logs", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "audit hook" not in ran.stderr
    lines = program.split("\n")
    runs = {path.name: path for path in (tmp_path / "logs").iterdir()}
    names = {name: lines[int(name.rpartition("_")[2]) - 1].partition("# ")[2] for name in runs}
    return {said: tb_gradflow.open_log(runs[name]).report().findings[0] for name, said in names.items()}


def test_the_statements_of_a_step_run_again(tmp_path: Path) -> None:
    found = tried_in(tmp_path, FIRST)

    assert found.keys() == {"called", "apart", "raising", "by hand"}
    for finding in found.values():
        assert finding.tried is not None, finding
        assert (finding.cause, finding.tried.works) == ("nondiff_rounding", True)
        assert finding.tried.trained is not None, finding
        first, last = finding.tried.trained.loss
        assert first is not None
        assert last is not None
        assert last < first, finding
    # An argument that the function gives another value has that value only once.
    assert found["called"].tried.loss == pytest.approx([found["called"].tried.loss[0]] * 2)


BUILT_LATE = (
    HEAD
    + """
class Critic:
    def __init__(self):
        self.model = network()

    def slope(self, x):
        x = tf.convert_to_tensor(x)
        with tf.GradientTape() as tape:  # slope
            value = tf.squeeze(self.model(x))
        return tape.gradient(value, x)


class Actor:
    def __init__(self):
        self.model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8)])
        self.optimizer = keras.optimizers.Adam()

    def train(self, x, slope):
        with tf.GradientTape() as tape:  # actor
            action = self.model(x)
        gradients = tape.gradient(action, self.model.trainable_variables, -slope)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))


def main():
    critic, actor = Critic(), Actor()
    actor.train(X, critic.slope(X))


try:
    main()
except TypeError:
    pass
"""
)


def test_an_edited_step_may_build_its_optimizer(tmp_path: Path) -> None:
    """TensorFlow makes a function of its own to initialise the variables."""
    finding = tried_in(tmp_path, BUILT_LATE)["slope"]

    assert finding.cause == "tape_not_watching"
    assert finding.edit is not None
    assert "tape.watch(x)" in finding.edit.after
    assert finding.tried is not None
    assert finding.tried.works


def test_an_edit_after_which_numpy_gets_a_gradient_is_not_discarded(tmp_path: Path) -> None:
    """It cannot be compiled then. Without the edit, the gradient is None."""
    finding = tried_in(tmp_path, BUILT_LATE.replace("-slope", "-np.asarray(slope)"))["slope"]

    assert finding.edit is not None
    assert "tape.watch(x)" in finding.edit.after
    assert finding.not_tried == "It was not tried: the step is compiled for that, and raises before its loss is known."


LEAVES = (
    HEAD
    + """
def rough(out):
    return 0.1 * np.mean(np.abs(np.diff(out.numpy(), axis=0)))


def main():
    model, optimizer = network(), keras.optimizers.Adam(0.01)
    for _ in range(6):
        with tf.GradientTape() as tape:  # leaves
            out = model(X)
            loss = tf.reduce_mean((out - Y) ** 2) + rough(out)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))


main()
"""
)


def test_an_edit_that_stays_in_tensorflow_is_tried_although_the_step_itself_cannot_be_compiled(tmp_path: Path) -> None:
    finding = tried_in(tmp_path, LEAVES)["leaves"]

    assert finding.cause == "python_escape"
    assert finding.edit is not None
    assert "tf.experimental.numpy.diff(out, axis=0)" in finding.edit.after
    assert finding.tried is not None
    assert (finding.tried.works, finding.tried.keeps) == (True, ("forward",))
    assert finding.tried.trained is not None
    first, last = finding.tried.trained.loss
    assert first is not None
    assert last is not None
    assert last < first


def test_what_cannot_run_again_says_why(tmp_path: Path) -> None:
    found = tried_in(tmp_path, SECOND)

    assert found.keys() == {"private", "two", "writes", "decides"}
    assert found["private"].tried.works
    assert found["two"].tried.works
    assert found["two"].tried.trained is not None
    assert found["writes"].tried is None
    assert found["writes"].not_tried == ("It was not tried in this step: its Python code would write a file again.")
    assert (tmp_path / "scores").read_text(encoding="utf-8") == "scored " * 6
    assert found["decides"].tried is None
    assert "as a compiled step it raises OperatorNotAllowedInGraphError" in found["decides"].not_tried


@pytest.mark.parametrize("asked", [True, "auto"])
def test_while_the_program_goes_on_no_python_code_runs_again_unasked(tmp_path: Path, asked: Any) -> None:
    program = importlib.reload(edited_programs)  # the garbage collector must know its functions
    seen: list[Any] = []
    recorded = Recorded(lambda: str(tmp_path), {"try_fixes": asked})
    recorded.start()

    program.eager_loop(seen)
    recorded.stop()

    [run] = recorded.names
    [finding] = tb_gradflow.open_log(tmp_path / run).report().findings
    is_tried = asked is True
    assert (finding.tried is not None) == is_tried
    assert ("the program goes on" in finding.not_tried) != is_tried
    assert len(seen) == 3
    assert all(isinstance(each, tf.__internal__.EagerTensor) for each in seen)


SOURCE = """
def train(data, model):
    total = 0
    for x in data:
        total += 1
        with tape() as t:
            x = x * 2
            loss = model(x)
        print("loss", loss)
        gradients = t.gradient(loss, model)
        clipped = clip(gradients)
        shown = show(gradients)
        model.apply_gradients(clipped)
        total = total + shown
"""


def _train(text: str) -> Any:
    return next(each for each in compile(text, "of_a_test.py", "exec").co_consts if hasattr(each, "co_code"))


def test_only_what_is_needed_runs() -> None:
    values = {"x": 3, "model": None, "total": 1, "data": ()}

    code = Body(_train(SOURCE), 6, 13, values).code(SOURCE)

    assert set(code.co_names) >= {"tape", "gradient", "clip", "apply_gradients", "model"}
    assert not set(code.co_names) & {"print", "show", "total", "data"}
    assert set(code.co_varnames) == {"x", "t", "loss", "gradients", "clipped"}
    assert code.co_firstlineno == 6


def test_without_a_known_end_the_last_update_is_the_end() -> None:
    code = Body(_train(SOURCE), 6, None, {"x": 3}).code(SOURCE)

    assert "apply_gradients" in code.co_names
    assert "total" not in code.co_varnames


def test_nothing_is_heard_any_more_while_python_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sets the names of modules to `None`, and hooks stay."""
    monkeypatch.setattr(outside, "_of_thread", None)

    sys.audit("tb_gradflow.test")
    outside._heard("open", ("a", "w", 0))
