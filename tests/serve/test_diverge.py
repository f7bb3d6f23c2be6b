"""The first difference between two logs, as a person and as a build server read it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tb_gradflow.cli.main import main
from tb_gradflow.record.schema import Movement, Optimizer, Session, StepRecord, StepValues, Trace, WeightsBefore
from tests.store.samples import open_writer, session, step, trace


def write(directory: Path, steps: Sequence[StepRecord], of: Trace | None = None, by: Session | None = None) -> None:
    with open_writer(directory, by or session()) as writer:
        writer.write_trace(of or trace())
        for each in steps:
            writer.write_step(each)


def steps(*numbers: int, loss: float = 0.5, weights: Sequence[float] = ()) -> list[StepRecord]:
    """Steps whose numbers do not depend on which they are; before the first, the variables have these norms."""
    made = [replace(step(0, loss=loss, norm=4.0), step=number, wall_time=float(number)) for number in numbers]
    if weights:
        before = tuple(WeightsBefore(number, norm, 0.0) for number, norm in enumerate(weights))
        made[0] = replace(made[0], values=StepValues(made[0].step, -1, (), weights=before))
    return made


def test_equal_runs_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a", steps(0, 1, 2))
    write(tmp_path / "b", steps(1, 2, 3, 4))

    assert main(["diverge", str(tmp_path), "a", "b"]) == 0

    said = capsys.readouterr().out.splitlines()
    assert said == [
        "A  a, 3 recorded steps from 0 to 2",
        "B  b, 4 recorded steps from 1 to 4",
        "No difference beyond rounding in the 2 steps that both runs have recorded.",
        "  All values are equal.",
        "  1 step of A and 2 of B are recorded in one run only, and were not compared.",
    ]


def test_a_loss_that_rounds_differently_is_no_difference(tmp_path: Path) -> None:
    write(tmp_path / "a", steps(0, 1))
    write(tmp_path / "b", steps(0, 1, loss=0.5 * (1 + 2e-7)))

    assert main(["diverge", str(tmp_path), "a", "b"]) == 0


def test_a_loss_that_differs_says_what_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither log has the variables before the step, or the batch: older ones do not."""
    write(tmp_path / "a", steps(0))
    write(tmp_path / "b", steps(0, loss=0.6))

    assert main(["diverge", str(tmp_path), "a", "b"]) == 1

    said = " ".join(capsys.readouterr().out.split())
    assert "The runs differ beyond rounding in step 0, in the forward pass: `loss`, or one of the 5 ops" in said
    assert "The loss `loss` is 0.5 in A and 0.6 in B: a relative difference of 0.17" in said
    assert (
        "At least one log does not hold the batch and the variables before the step: the difference may begin" in said
    )


def test_a_variable_that_differs_before_the_step_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a", steps(0, weights=(1.0, 2.0)))
    write(tmp_path / "b", steps(0, loss=0.6, weights=(1.0, 2.001)))

    assert main(["diverge", str(tmp_path), "a", "b", "--json"]) == 1

    told = json.loads(capsys.readouterr().out)
    assert (told["step"], told["direction"], told["basis"]) == (0, "forward", "weights")
    assert told["value"]["name"] == "step_filter/threshold"
    assert told["op"]["a"]["name"] == told["op"]["b"]["name"] == "threshold/read"


def test_settings_of_the_optimizer_come_first_where_the_update_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adam = Optimizer("Adam", True, False, "", False, 1, False, options=("epsilon=1e-07",))
    [one] = steps(0)
    one = replace(one, gradients=one.gradients + struct.pack("<6f", 0, 0, 0, 0, 0, 0.01))
    moving = replace(trace(), optimizers=(adam,), movements=(Movement(0, 0, 3, 0.0, ""),))
    write(tmp_path / "a", [one], moving)
    moved = replace(one, variables=struct.pack("<8f", 1.0, 0.25, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0))
    changed = replace(moving, optimizers=(replace(adam, options=("epsilon=0.001",)),))
    write(tmp_path / "b", [moved], changed, replace(session(), keras="3.14.0", seed=7))

    assert main(["diverge", str(tmp_path), "a", "b"]) == 1

    said = capsys.readouterr().out.splitlines()
    assert "in the update: the update of `dense/kernel`." in " ".join(said)
    assert said[said.index("What differs:") + 1 :][:3] == [
        "  optimizer: epsilon  1e-07 → 0.001",
        "  Keras               3.15.0 → 3.14.0",
        "  global seed         none → 7",
    ]


def test_runs_without_a_step_in_common_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a", steps(0, 1))
    write(tmp_path / "b", steps(2, 3))

    assert main(["diverge", str(tmp_path), "a", "b"]) == 2

    assert "a and b have nothing to compare: they do not have a recorded step in common" in capsys.readouterr().err


def test_a_run_that_does_not_exist_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a", steps(0))

    assert main(["diverge", str(tmp_path), "a", "c"]) == 2

    assert "has no run 'c': it has a" in capsys.readouterr().err


def test_a_jump_after_unrecorded_steps_may_have_begun_in_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "a", steps(0, 10))
    write(tmp_path / "b", [*steps(0), *steps(10, loss=5.0)])

    assert main(["diverge", str(tmp_path), "a", "b"]) == 1

    assert "No step between 0 and 10 is recorded in both runs: it may have begun in one of them." in " ".join(
        capsys.readouterr().out.split()
    )
