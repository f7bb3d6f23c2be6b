"""Trainings on several devices, and by several workers, in processes of their own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tests.trace.recording import read

ROOT = Path(__file__).parents[3]


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.trace.programs.{program}", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def found_by(process: subprocess.Popen[str]) -> Any:
    try:
        # On a busy machine one that takes half a minute alone takes ten.
        said, complaints = process.communicate(timeout=900)
    finally:
        process.kill()
    for line in said.splitlines():
        if line.startswith("FOUND "):
            return json.loads(line.removeprefix("FOUND "))
    return {"failed": complaints}


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("mirrored")
    found = found_by(started("mirrored", str(directory)))
    assert "trainings" in found, found
    return directory, found


@pytest.mark.parametrize("kind", ["fit", "unbuilt", "legacy", "loop", "nested"])
def test_replicas_train_as_they_do_without_the_recorder(kind: str, mirrored: tuple[Path, Any]) -> None:
    """Through `fit` of both Kerases, and through loops of the user's own."""
    _, found = mirrored

    plain, recorded = found["trainings"][kind]

    assert recorded == plain


def test_variables_that_a_loop_makes_in_its_first_step_have_the_values_that_they_have_without_the_recorder(
    mirrored: tuple[Path, Any],
) -> None:
    """From 2.18 on TensorFlow gives them none, and says so with the recorder as without it; before that it does."""
    _, found = mirrored

    plain, recorded = found["trainings"]["late"]

    assert recorded == plain


@pytest.mark.parametrize("kind", ["fit", "unbuilt", "legacy", "loop", "nested"])
def test_replicas_write_one_log_of_one_structure(kind: str, mirrored: tuple[Path, Any]) -> None:
    directory, _ = mirrored

    recorded = read(directory / kind)

    assert recorded.steps == (0, 2)
    assert len(list((directory / kind / "gradflow").iterdir())) == 1
    assert not any("replica" in variable.name for variable in recorded.trace.variables)
    assert {each.status for each in tb_gradflow.open_log(directory / kind).report().variables.values()} <= {
        "connected",
        "frozen",
    }


@pytest.mark.parametrize("kind", ["loop", "nested"])
def test_a_variables_gradient_is_the_sum_over_the_replicas(kind: str, mirrored: tuple[Path, Any]) -> None:
    """Which is what one device takes from the whole batch; and so is the loss."""
    directory, found = mirrored

    recorded = read(directory / kind)

    assert {name: recorded.gradient(name) for name in found["norms"]} == pytest.approx(found["norms"], rel=1e-4)
    assert recorded.losses[0][0] == pytest.approx(found["trainings"][kind][0][0][0], rel=1e-5)


def test_a_tensors_gradient_has_the_parts_of_all_replicas(mirrored: tuple[Path, Any]) -> None:
    directory, found = mirrored

    recorded = read(directory / "loop")

    # It has a row for each example, of which each replica has its own.
    assert recorded.tensor(recorded.op("Tanh")) == pytest.approx(found["hidden"], rel=1e-4)


def test_a_nan_on_one_replica_is_found(mirrored: tuple[Path, Any]) -> None:
    directory, _ = mirrored

    report = tb_gradflow.open_log(directory / "bad").report()

    assert report.variables["net/a/kernel"].status == "nan"
    [finding, *_] = [each for each in report.findings if each.severity == "error"]
    assert finding.op is not None
    assert finding.op.type == "Sqrt"


def test_the_range_of_what_a_function_is_given_is_that_over_all_replicas(mirrored: tuple[Path, Any]) -> None:
    """The rows of the first replica have the largest value, those of the second the smallest."""
    directory, found = mirrored

    recorded = read(directory / "bad")

    [row] = [each.row for each in recorded.trace.ranges if recorded.trace.ops[each.op].type == "Sqrt"]
    assert recorded.gradients[0][row][2:4].tolist() == pytest.approx(found["range"], rel=1e-5)
    assert found["range"][0] < -8 < 1 < found["range"][1]


@pytest.mark.parametrize("kind", ["fit", "loop"])
def test_of_two_workers_the_chief_writes_and_both_train_as_without_it(kind: str, tmp_path: Path) -> None:
    found = workers(kind, tmp_path)

    for each in found:
        plain, recorded = each["trainings"]
        assert recorded == plain
    assert len(list((tmp_path / "gradflow").iterdir())) == 1
    log = tb_gradflow.open_log(tmp_path)
    assert log.steps == ((0, 1, 2, 3, 4, 5) if kind == "fit" else (0, 2, 4))
    assert {each.status for each in log.report().variables.values()} == {"connected"}
    assert any("the part of the batch that the chief has" in note for note in read(tmp_path).trace.notes)


def test_keras_3_cannot_train_with_several_workers_and_the_user_is_told(tmp_path: Path) -> None:
    found = workers("keras", tmp_path)

    for each in found:
        assert "does not support MultiWorkerMirroredStrategy" in str(each)
        assert "`fit` of tf_keras" in str(each)


@pytest.mark.parametrize("kind", ["fit", "loop"])
@pytest.mark.parametrize("failing", [0, 1])
def test_a_fault_of_the_chiefs_recorder_leaves_no_other_waiting(kind: str, failing: int, tmp_path: Path) -> None:
    """The other worker has no recorder that could fail."""
    found = workers(kind, tmp_path, str(failing), "tb_gradflow.trace.capture.collector._answer")

    for number, each in enumerate(found):
        assert "trainings" in each, each
        plain, recorded = each["trainings"]
        assert recorded == plain
        assert ["injected" in told for told in each["warnings"]] == [True] * (number == failing == 0)


def workers(kind: str, directory: Path, *fault: str) -> list[Any]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("localhost", 0))
        other.bind(("localhost", 0))
        ports = f"{one.getsockname()[1]},{other.getsockname()[1]}"
    running = [started("workers", str(number), ports, str(directory), kind, *fault) for number in range(2)]
    return [found_by(each) for each in running]
