from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.api import hparams_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_gradflow.cli.main import main
from tb_gradflow.record.schema import FORMAT
from tests.serve.processes import environment
from tests.store.samples import open_writer, session, step, trace, write_log


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tb_gradflow.cli.main", *arguments]


def test_a_report_is_printed_for_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "a")
    write_log(tmp_path / "b")

    assert main(["report", str(tmp_path)]) == 0

    out = capsys.readouterr().out
    assert out.index("a, step 2") < out.index("b, step 2")
    assert "ERROR  nondiff_comparison" in out


def test_without_a_directory_the_newest_run_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for age, name in enumerate(("old", "new", "older")):
        write_log(tmp_path / "logs" / name)
        for file in (tmp_path / "logs" / name).rglob("*"):
            os.utime(file, (1e9 - abs(age - 1), 1e9 - abs(age - 1)))

    assert main(["report"]) == 0
    out = capsys.readouterr().out
    assert main(["fix"]) == 0
    err = capsys.readouterr().err

    assert "new, step 2" in out
    assert "old, step 2" not in out
    assert "no finding has a fix that can be written as an edit" in err


def test_without_a_directory_and_without_logs_it_says_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["report"]) == 2

    assert "there is no logs here" in capsys.readouterr().err


def test_without_arguments_it_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    assert "print what is wrong with the runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["reprot", "logs"], "report"),
        (["report", "logs", "--stpe", "3"], "--step"),
        (["report", "logs", "--format", "jsn"], "json"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_right_one(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["python", "train.py", "--epochs", "3"], "`tb-gradflow run train.py --epochs 3`, without `python`"),
        (["missing.py"], "missing.py does not exist"),
    ],
)
def test_a_program_that_is_not_there_is_told_before_anything_runs(
    program: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["run", *program]) == 2

    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_package_is_a_program(tmp_path: Path) -> None:
    write_log(tmp_path)

    ended = subprocess.run(
        [sys.executable, "-m", "tb_gradflow", "report", str(tmp_path)],
        env=environment(tensorflow=False),
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0
    assert "nondiff_comparison" in ended.stdout


def of_kernel(where: Path) -> None:
    """A run without the threshold that a mask cuts off: a healthy one, at a norm that is common."""
    whole = trace()
    with open_writer(where) as writer:
        writer.write_trace(
            replace(
                whole,
                ops=tuple(replace(op, reads=0 if op.reads is not None else None) for op in whole.ops),
                variables=whole.variables[:1],
                variable_gradients=whole.variable_gradients[:1],
            )
        )
        writer.write_step(replace(step(0, norm=40.0), variables=struct.pack("<4f", 1.0, 0.125, 0.0, 0.0)))


def test_several_runs_begin_with_a_table_of_all_of_them_worst_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_kernel(tmp_path / "a-healthy")
    write_log(tmp_path / "b-broken")
    open_writer(tmp_path / "c-newer", session(format=FORMAT + 1)).close()

    assert main(["report", str(tmp_path)]) == 2

    title, _, heading, *rows = capsys.readouterr().out.splitlines()
    assert title == "3 runs: 1 error, 1 unknown, 1 healthy"
    assert heading.split() == ["run", "since", "step", "loss", "recorded", "worst", "finding"]
    assert rows[0].split()[:4] == ["error", "b-broken", "0", "0.5"]
    assert rows[0].endswith("  nondiff_comparison  model.py:17")
    assert rows[1].split()[:2] == ["unknown", "c-newer"]
    assert "log has format" in rows[1]
    assert rows[2].split()[:3] == ["healthy", "a-healthy", "0.5"]


def test_of_a_sweep_each_trouble_is_printed_once_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(9):
        write_log(tmp_path / f"broken{number}", of=session(1_700_000_000_000 + number))
    for number in range(3):
        of_kernel(tmp_path / f"healthy{number}")

    main(["report", str(tmp_path)])

    out = capsys.readouterr().out
    assert out.startswith("12 runs: 9 error, 3 healthy\n")
    assert out.count("ERROR  nondiff_comparison") == 1
    assert "8 other runs have the same worst finding" in out
    assert out.count("healthy1") == 1, "it is in the table alone"


def test_a_sweep_says_which_hyperparameters_its_broken_runs_share(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(6):
        write_log(tmp_path / f"broken{number}")
        log_hyperparameters(tmp_path / f"broken{number}", lr=0.1 * (1 + number), optimizer="sgd")
        of_kernel(tmp_path / f"healthy{number}")
        log_hyperparameters(tmp_path / f"healthy{number}", lr=0.01, optimizer="sgd")

    main(["report", str(tmp_path)])

    title, shared, _, heading, *rows = capsys.readouterr().out.splitlines()
    assert title == "12 runs: 6 error, 6 healthy"
    assert shared == "All 6 broken runs have lr \u2265 0.1; none of the 6 healthy ones does."
    # What all of them have alike has no column.
    assert heading.split() == ["run", "since", "step", "loss", "recorded", "lr", "worst", "finding"]
    [first] = [row for row in rows if "broken0" in row][:1]
    assert first.split()[-3:] == ["0.1", "nondiff_comparison", "model.py:17"]


def log_hyperparameters(where: Path, **values: float | str) -> None:
    """As `hp.hparams` logs them, without TensorFlow."""
    with open(where / "events.out.tfevents.1", "wb") as file:
        RecordWriter(file).write(Event(summary=hparams_pb(values)).SerializeToString())


def test_a_training_that_may_still_be_running_says_how_old_its_last_step_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_writer(tmp_path / "now") as writer:
        writer.write_trace(trace())
        writer.write_step(replace(step(7), wall_time=time.time()))
        main(["report", str(tmp_path)])
    write_log(tmp_path / "before")
    running = capsys.readouterr().out

    main(["report", str(tmp_path), "--run", "before"])

    assert "the training may still be running" in running
    assert "still be running" not in capsys.readouterr().out


def test_a_directory_that_was_recorded_into_twice_says_that_the_newest_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for began in (1_700_000_000_000, 1_700_000_900_000):
        write_log(tmp_path, of=session(id=began))

    main(["report", str(tmp_path)])

    assert "The directory also contains an earlier recording, not shown" in capsys.readouterr().out


def test_json_holds_a_report_for_each_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "a")
    write_log(tmp_path / "b")

    assert main(["report", str(tmp_path), "--json", "--run", "b", "--step", "1"]) == 0

    runs = json.loads(capsys.readouterr().out)["runs"]
    assert list(runs) == ["b"]
    assert set(runs["b"]) == {"format", "healthy", "variables", "findings", "terms", "verdict"}
    assert runs["b"]["findings"][0]["cause"] == "nondiff_comparison"


def test_a_report_says_once_where_its_words_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "a")
    write_log(tmp_path / "b")

    main(["report", str(tmp_path)])
    text = capsys.readouterr().out
    main(["report", str(tmp_path), "--json"])

    assert text.endswith("\nExplained: tb-gradflow cause nondiff_comparison\n")
    assert text.count("Explained: ") == 1
    assert json.loads(capsys.readouterr().out)


def test_a_healthy_report_names_no_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_kernel(tmp_path)

    main(["report", str(tmp_path)])

    assert "tb-gradflow cause" not in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "status"), [((), 0), (("--fail-on=error",), 1), (("--fail-on=warning",), 1)])
def test_the_exit_status_says_whether_it_failed(tmp_path: Path, arguments: tuple[str, ...], status: int) -> None:
    write_log(tmp_path)

    assert main(["report", str(tmp_path), *arguments]) == status


def test_a_healthy_run_does_not_fail(tmp_path: Path) -> None:
    healthy = trace()
    with open_writer(tmp_path, session(expected=("step_filter/*",))) as writer:
        writer.write_trace(healthy)
        writer.write_step(step(0, norm=0.5))

    assert main(["report", str(tmp_path), "--fail-on=error"]) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere",), "does not exist"),
        (("logs", "--run", "c"), "has no run 'c': it has a, newer"),
        (("logs", "--run", "newer"), "run newer: log has format"),
        (("logs", "--run", "a", "--step", "9"), "run a: step 9 was not recorded"),
        (("logs", "--step", "nine"), "invalid int value: 'nine'"),
    ],
)
def test_bad_input_is_said_in_words_and_ends_with_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    write_log(tmp_path / "logs" / "a")
    open_writer(tmp_path / "logs" / "newer", session(format=FORMAT + 1)).close()
    monkeypatch.chdir(tmp_path)

    try:
        status = main(["report", *arguments])
    except SystemExit as leaving:
        status = int(leaving.code or 0)

    assert status == 2
    assert complaint in capsys.readouterr().err


def test_runs_that_can_be_read_are_reported_beside_one_that_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "a")
    open_writer(tmp_path / "newer", session(format=FORMAT + 1)).close()

    assert main(["report", str(tmp_path), "--json"]) == 2

    said = capsys.readouterr()
    assert list(json.loads(said.out)["runs"]) == ["a"]
    assert "run newer: log has format" in said.err


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    for number in range(300):
        write_log(tmp_path / f"{number:03d}", steps=1)

    line = " ".join(command("report", str(tmp_path))) + " | head -n 1"
    done = subprocess.run(line, shell=True, env=environment(tensorflow=False), capture_output=True, text=True)

    assert done.stdout == "300 runs: 300 error\n"
    assert done.stderr == ""


def test_names_that_the_terminal_cannot_show_do_not_stop_it(tmp_path: Path) -> None:
    write_log(tmp_path / "größe", steps=1)

    environ = {**environment(tensorflow=False), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command("report", str(tmp_path)), env=environ, capture_output=True, text=True)

    assert done.returncode == 0
    assert done.stdout.startswith("gr??e, step 0\n")


def test_it_runs_without_tensorflow(tmp_path: Path) -> None:
    write_log(tmp_path, steps=1)

    done = subprocess.run(
        command("report", str(tmp_path), "--json"), env=environment(tensorflow=False), capture_output=True, text=True
    )

    assert done.stderr == ""
    assert list(json.loads(done.stdout)["runs"]) == ["."]
