"""Asks the seeds' programs, each once in a process: tests and the page with all of them look at the same answers."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from tests.seeds.answers import Answer, answer_of, gradients_in_words
from tests.seeds.checks import CheckProgram
from tests.seeds.models import ModelProgram
from tests.seeds.programs import Program
from tests.seeds.trainings import TrainingProgram
from tests.serve.processes import environment

ROOT = Path(__file__).parents[2]


@functools.cache
def of_function(program: Program, eagerly: bool) -> Answer:
    with _as_typed(eagerly):
        function, sources = program.build()
        report = tb_gradflow.explain(function, variables=sources)
        return answer_of(report, gradients_in_words(_tape_gradients(*program.build())))


def _tape_gradients(function: Callable[[], Any], sources: list[Any]) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch([each for each in sources if each.dtype.is_floating])
        result = function()
    return _arrays(tape.gradient(result, sources))


@functools.cache
def of_model(program: ModelProgram, eagerly: bool) -> Answer:
    with _as_typed():
        model, x, y = program.build()
        model.run_eagerly = eagerly
        return answer_of(tb_gradflow.explain(model, x, y), gradients_in_words(_gradients_of_model(model, x, y)))


def _gradients_of_model(model: Any, x: Any, y: Any) -> list[Any]:
    variables = [each.value for each in model.trainable_variables]

    @tf.function
    def gradients() -> Any:
        inputs, labels = tf.constant(x, tf.float32), tf.constant(y, tf.float32)
        with tf.GradientTape() as tape:
            loss = model.compute_loss(inputs, labels, model(inputs, training=True))
        return tape.gradient(loss, variables)

    return _arrays(gradients())


def _arrays(gradients: list[Any]) -> list[Any]:
    return [None if each is None else tf.convert_to_tensor(each).numpy() for each in gradients]


def of_fit(program: ModelProgram) -> Answer:
    """Of a step of `fit` with all of the data."""
    with _as_typed(), tempfile.TemporaryDirectory() as log:
        model, x, y = program.build()
        recorder = tb_gradflow.GradFlowCallback(log, update_freq=1)
        model.fit(x, y, batch_size=len(x), shuffle=False, verbose=0, callbacks=[recorder])
        return answer_of(tb_gradflow.open_log(log).report(), "")


@functools.cache
def of_training(program: TrainingProgram, eagerly: bool) -> Answer:
    """Of its last step."""
    with _as_typed(eagerly), tempfile.TemporaryDirectory() as log:
        did = program.train(Path(log))
        return answer_of(tb_gradflow.open_log(log).report(), did)


@functools.cache
def of_check(program: CheckProgram) -> Answer:
    """Its verdicts stand in the place of statuses, those of what is wrong in the place of causes."""
    check = program.check()
    found = list(check.arguments.values())
    return Answer(
        "",
        tuple(each.verdict for each in found),
        tuple(each.verdict for each in found if not each.correct),
        (),
        " ".join([*(each.message for each in found), *check.notes]),
        check.correct,
    )


@functools.cache
def in_tensorflow_1() -> dict[str, Answer]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.seeds.v1_programs"],
        cwd=ROOT,
        env={**environment(tensorflow=True), "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    return {name: Answer.from_dict(answer) for name, answer in told.items()}


@contextlib.contextmanager
def _as_typed(eagerly: bool = False) -> Iterator[None]:
    """Layers are named as in a process of their own. What Keras and NumPy warn of is what the programs are about."""
    keras.utils.clear_session()
    tf.config.run_functions_eagerly(eagerly)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        tf.config.run_functions_eagerly(False)
