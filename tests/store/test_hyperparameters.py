"""Hyperparameters as TensorBoard's own plugin writes them, read from files and from TensorBoard."""

from __future__ import annotations

from pathlib import Path

import pytest
import tensorflow as tf
from tensorboard.plugins.hparams import api as hp

from tb_gradflow.store.hyperparameters import below, of_run
from tests.serve.processes import tensorboard
from tests.store.samples import write_log

SETTINGS = {"lr": 0.1, "optimizer": "sgd", "nesterov": True, "units": 16}


def log(directory: Path, **settings: object) -> None:
    with tf.summary.create_file_writer(str(directory)).as_default():
        tf.summary.scalar("loss", 1.0, step=0)
        assert hp.hparams(settings)


def test_they_are_read_as_they_were_logged(tmp_path: Path) -> None:
    log(tmp_path / "a", **SETTINGS)
    log(tmp_path / "b", lr=float("inf"))
    write_log(tmp_path / "a", steps=1)

    assert below(str(tmp_path)) == {"a": SETTINGS, "b": {"lr": "inf"}}


def test_other_files_hold_none(tmp_path: Path) -> None:
    write_log(tmp_path / "a", steps=1)
    (tmp_path / "events.out.tfevents.1.cut").write_bytes(b"_hparams_/session_start_info" * 3)
    (tmp_path / "events.out.tfevents.2.empty").write_bytes(b"")

    assert below(str(tmp_path)) == {}
    assert below(str(tmp_path / "missing")) == {}


@pytest.mark.parametrize(
    ("run", "found"),
    [("sweep/a", "beside"), ("sweep/b", "below"), ("sweep/c/model", "above"), ("sweep/d", None), ("sweep/ab", None)],
)
def test_a_run_has_those_nearest_to_it(run: str, found: str | None) -> None:
    known = {name: {"where": where} for name, where in (("sweep/a", "beside"), ("sweep/a/train", "too far"))}
    known |= {"sweep/b/train": {"where": "below"}, "sweep/c": {"where": "above"}}

    assert of_run(run, known) == ({} if found is None else {"where": found})


@pytest.mark.parametrize("fast", ["true", "false"])
def test_tensorboard_tells_them_of_each_run(tmp_path: Path, fast: str) -> None:
    for number in range(8):
        log(tmp_path / f"run{number}", lr=0.1 * (1 + number), batch=32)
        write_log(tmp_path / f"run{number}", steps=1)

    with tensorboard(f"--logdir={tmp_path}", f"--load_fast={fast}") as board:
        board.wait_for_runs(8)
        told = board.ask("standings").json
        while not (told["complete"] and all(each["hyperparameters"] for each in told["runs"])):
            told = board.ask("standings").json

    assert [each["hyperparameters"] for each in told["runs"]] == [
        {"lr": pytest.approx(0.1 * (1 + number)), "batch": 32} for number in range(8)
    ]
    assert told["hyperparameters"] == ["lr"]
    assert told["shared"] == []
