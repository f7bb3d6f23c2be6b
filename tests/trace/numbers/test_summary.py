"""`tb_gradflow.summary.gradients`, under a writer of `tf.summary`."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import SetupError
from tb_gradflow.trace import summaries
from tests.trace.recording import data


class Loop:
    """A step that takes two gradients, of which one is asked for a variable that nothing uses."""

    def __init__(self, compiled: bool) -> None:
        keras.utils.set_random_seed(3)
        self.model = keras.Sequential(
            [keras.Input((6,)), keras.layers.Dense(4, "tanh", name="a"), keras.layers.Dense(2, name="b")], name="net"
        )
        self.unused = tf.Variable(1.0, name="unused")
        self.expected: list[float] = []
        self.step = tf.function(self._step) if compiled else self._step

    def _step(self, x: Any, y: Any) -> Any:
        kernel = self.model.trainable_variables[0].value
        with tf.GradientTape(persistent=True) as tape:
            error = tf.reduce_mean(tf.square(self.model(x) - y))
            size = tf.reduce_sum(tf.square(kernel))
        variables = [*(each.value for each in self.model.trainable_variables), self.unused]
        gradients = tape.gradient(error, variables)
        tb_gradflow.summary.gradients(error, variables, gradients)
        tb_gradflow.summary.gradients(size, [kernel], [tape.gradient(size, kernel)], name="size")
        for variable, gradient in zip(variables, gradients, strict=True):
            if gradient is not None:
                variable.assign_sub(0.1 * gradient)
        return tf.norm(gradients[0])

    def run(self, writer: Any, steps: int = 5, every: int = 1) -> list[float]:
        x, y = (tf.constant(each) for each in data())
        number = tf.Variable(0, dtype=tf.int64)
        norms = []
        with writer.as_default(step=number):
            for step in range(steps):
                number.assign(step)
                with tf.summary.record_if(lambda: tf.equal(number % every, 0)):
                    norms.append(float(self.step(x, y)))
                    tf.summary.scalar("norm", norms[-1])
        return norms


@pytest.mark.parametrize("compiled", [True, False], ids=["tf.function", "eager"])
def test_the_gradients_that_were_given_are_recorded_where_the_writer_records(compiled: bool, tmp_path: Path) -> None:
    """At its steps, in its run, as a log like any other."""
    writer = tf.summary.create_file_writer(str(tmp_path / "train"))

    norms = Loop(compiled).run(writer, every=2)

    writer.close()
    log = tb_gradflow.open_log(tmp_path / "train")
    assert log.steps == (0, 2, 4)
    np.testing.assert_allclose(log.history("net/a/kernel")["norm"], norms[::2], rtol=1e-5)
    status = {name: each.status for name, each in log.report().variables.items()}
    assert {status[name] for name in status if name != "unused"} == {"connected"}
    assert status["unused"] == ("unused" if compiled else "disconnected")
    assert len(list((tmp_path / "train").iterdir())) == 1


def test_losses_are_called_what_the_user_calls_them(tmp_path: Path) -> None:
    writer = tf.summary.create_file_writer(str(tmp_path))

    Loop(compiled=True).run(writer)

    writer.flush()
    [trace] = {each.index: each for each in _traces(tmp_path)}.values()
    assert [target.name for target in trace.targets] == ["loss", "size"]
    assert {op.type for op in trace.ops} >= {"MatMul", "Tanh", "ReadVariableOp"}
    assert not any("gradient_tape" in op.name for op in trace.ops)


def test_an_eager_loss_does_not_know_its_way_and_the_report_says_so(tmp_path: Path) -> None:
    writer = tf.summary.create_file_writer(str(tmp_path))

    Loop(compiled=False).run(writer)

    writer.flush()
    report = tb_gradflow.open_log(tmp_path).report()
    [finding] = report.findings
    assert "The loss was computed eagerly" in finding.message
    assert "tb_gradflow.watch" in finding.fix
    assert "does not know how it was computed" in str(report).replace("\n", " ")


def test_without_a_writer_nothing_is_recorded_and_nothing_happens() -> None:
    loop = Loop(compiled=True)

    assert float(loop.step(*(tf.constant(each) for each in data()))) > 0


def test_the_writers_own_summaries_stay_what_they_are(tmp_path: Path) -> None:
    writer = tf.summary.create_file_writer(str(tmp_path))

    Loop(compiled=True).run(writer)

    writer.close()
    [path] = tmp_path.iterdir()
    events = list(tf.compat.v1.train.summary_iterator(str(path)))
    assert [event.step for event in events for value in event.summary.value if value.tag == "norm"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda v: tb_gradflow.summary.gradients(v * 1.0, [v], []),
            "one gradient for each variable, got 0 for 1 variables",
        ),
        (lambda v: tb_gradflow.summary.gradients(v * 1.0, [v], [v * 1.0]), "no step is set"),
        (lambda v: tb_gradflow.summary.gradients([v], v * 1.0, [v * 1.0]), "the loss must be a tensor, got a list"),
        (lambda v: tb_gradflow.summary.gradients(v, [v], [v * 1.0]), "the loss must be a tensor, got a variable"),
        (lambda v: tb_gradflow.summary.gradients(v * 1.0, v, v * 1.0), "variables must be a list, got a variable"),
        (lambda v: tb_gradflow.summary.gradients(v * 1.0, [v * 1.0], [v]), "only variables, got a tensor: the arg"),
        (lambda v: tb_gradflow.summary.gradients(v * 1.0, [v], v * 1.0), "gradients must be a list, got a tensor"),
        (
            lambda v: tb_gradflow.summary.gradients(v * 1.0, [v], [v]),
            "the gradients that the tape returned, got a variable",
        ),
    ],
)
def test_wrong_arguments_are_told(call: Callable[[Any], Any], told: str, tmp_path: Path) -> None:
    with tf.summary.create_file_writer(str(tmp_path)).as_default(), pytest.raises(SetupError, match=told):
        call(tf.Variable(1.0))


def test_a_step_that_does_not_increase_is_left_out_and_told_once(tmp_path: Path) -> None:
    weight = tf.Variable(1.0, name="w")
    writer = tf.summary.create_file_writer(str(tmp_path))

    def train() -> None:
        for step in (1, 2, 1, 0, 3):
            with writer.as_default(step=step):
                tb_gradflow.summary.gradients(weight * 1.0, [weight], [tf.constant(1.0)])
        writer.flush()

    with pytest.warns(RuntimeWarning, match="skipped step 1 because it came after step 2") as told:
        train()

    assert len(told) == 1
    assert tb_gradflow.open_log(tmp_path).steps == (1, 2, 3)


def test_a_fault_of_the_recorder_leaves_the_training_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_gradflow.trace.summaries.trace_of", lambda *_, **__: 1 / 0)
    writer = tf.summary.create_file_writer(str(tmp_path))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        norms = Loop(compiled=True).run(writer)

    assert len(norms) == 5
    assert sum("ZeroDivisionError" in str(each.message) for each in told) == 1


def _traces(directory: Path) -> Any:
    from tb_gradflow.store.directory import DirectoryReader
    from tb_gradflow.store.run import StoredRun

    run = StoredRun(DirectoryReader(str(directory)))
    index = run.index()
    return [run.trace(index.session.id, number) for number in index.traces]


def handed_in(tape: Any, loss: Any, a: Any, b: Any) -> list[Any]:
    return [tape.gradient(loss, a), None]


def nothing(tape: Any, loss: Any, a: Any, b: Any) -> list[Any]:
    return [None, None]


def by_hand(tape: Any, loss: Any, a: Any, b: Any) -> list[Any]:
    return [tf.ones([3, 2]), None]


def asked(tape: Any, loss: Any, a: Any, b: Any) -> list[Any]:
    return list(tape.gradient(loss, [a, b]))


@pytest.mark.parametrize("compiled", [True, False], ids=["tf.function", "eager"])
@pytest.mark.parametrize("gradients", [handed_in, nothing, by_hand])
def test_a_none_that_was_passed_is_not_said_to_come_from_a_tape(
    gradients: Callable[..., list[Any]], compiled: bool, tmp_path: Path
) -> None:
    report = report_of(gradients, compiled, tmp_path)

    [finding] = [each for each in report.findings if each.severity == "error"]
    assert "b" in finding.variables
    for said in (report.summary, finding.message):
        assert "did not record" not in said
        assert "did not see" not in said
    if compiled:
        assert "`None` was passed for" in report.summary
        assert "`None` was passed for" in finding.message


def test_what_a_tape_answered_is_reported_as_ever(tmp_path: Path) -> None:
    assert report_of(asked, True, tmp_path).healthy


def report_of(gradients: Callable[..., list[Any]], compiled: bool, directory: Path) -> Any:
    a, b = tf.Variable(tf.ones([3, 2]), name="a"), tf.Variable(tf.ones([2]), name="b")

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ a + b))
        tb_gradflow.summary.gradients(loss, [a, b], gradients(tape, loss, a, b))

    writer = tf.summary.create_file_writer(str(directory))
    with writer.as_default(step=0):
        (tf.function(step) if compiled else step)(tf.ones([4, 3]))
    writer.close()
    return tb_gradflow.open_log(directory).report()


def test_a_fork_while_another_thread_records_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forked process has no such thread, so that nobody would ever release its lock."""
    began, ends = threading.Event(), threading.Event()
    arrived = summaries.SummaryLog._arrived

    def slow(*args: Any) -> None:
        began.set()
        ends.wait()
        arrived(*args)

    monkeypatch.setattr(summaries.SummaryLog, "_arrived", slow)
    writer = tf.summary.create_file_writer(str(tmp_path))
    training = threading.Thread(target=Loop(compiled=False).run, args=(writer, 1))
    training.start()
    began.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends the child if it waits
        writer.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    ends.set()
    training.join()
    writer.close()

    assert os.waitstatus_to_exitcode(status) == 0
    assert tb_gradflow.open_log(tmp_path).steps == (0,)
