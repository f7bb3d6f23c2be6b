"""Records the logs that `logs` opens: one small log for each program of this repository that trains.

    python -m tests.recordings.record [GROUP/PATTERN …]      # such as `cases/healthy_*`; minutes for all of them
    python -m tests.recordings.expected                      # then: what is said about them

The tests here open these logs, so that all rules run on real steps within seconds and without TensorFlow. Record a log
again if the recorder writes something new into it that rules need, and a new one for each new case. A log holds no path
of anybody's machine and no time.
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib.util
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tb_gradflow.serve.runs.history import History
from tb_gradflow.store.run import StoredRun
from tests.recordings.logs import group, groups, packed, run_of, save_group

ROOT = Path(__file__).parents[2]

MOST_CHARACTERS = 1_000_000
"""Of the JSON of a log: those of larger models are left out, for they show no more than others."""

# Programs that share a process, since loading TensorFlow takes longer than a program.
TOGETHER = 40

LOG, FAILURE = "LOG ", "FAILURE "

Recorded = Callable[[Path], StoredRun]
"""Runs a program, which may use an empty directory, and returns what was recorded."""


def programs() -> dict[str, Recorded]:
    """By group and name."""
    return {**_cases(), **_seeds(), **_demos(), **_edits()}


def _cases() -> dict[str, Recorded]:
    from tests.cases.judge import HERE, case_names, explained

    def of_case(name: str, file: str, _: Path) -> StoredRun:
        return _run_of(explained(name, file=file))

    fixed = sorted(path.parent.name for path in HERE.glob("*/fixed.py"))
    return {
        **{f"cases/{name}": partial(of_case, name, "case.py") for name in case_names()},
        **{f"repaired/{name}": partial(of_case, name, "fixed.py") for name in fixed},
    }


def _seeds() -> dict[str, Recorded]:
    import tb_gradflow
    from tests.seeds.models import MODELS, ModelProgram
    from tests.seeds.programs import PROGRAMS, Program
    from tests.seeds.trainings import TRAININGS, TrainingProgram

    def of_function(program: Program, _: Path) -> StoredRun:
        function, asked = program.build()
        return _run_of(tb_gradflow.explain(function, variables=asked))

    def of_model(program: ModelProgram, _: Path) -> StoredRun:
        model, x, y = program.build()
        return _run_of(tb_gradflow.explain(model, x, y))

    def of_training(program: TrainingProgram, directory: Path) -> StoredRun:
        program.train(directory)
        return run_of(tb_gradflow.open_log(directory))

    return {
        **{f"functions/{slug(each.name)}": partial(of_function, each) for each in PROGRAMS},
        **{f"models/{slug(each.name)}": partial(of_model, each) for each in MODELS},
        **{f"trainings/{slug(each.name)}": partial(of_training, each) for each in TRAININGS},
    }


def _demos() -> dict[str, Recorded]:
    import tb_gradflow
    from tb_gradflow.demo.gallery import DEMOS, Demo

    def train(demo: Demo, fixed: bool, directory: Path) -> StoredRun:
        demo.load()(str(directory), fixed=fixed)
        return run_of(tb_gradflow.open_log(directory))

    return {
        f"demos/{demo.name}_{variant}": partial(train, demo, fixed)
        for demo in DEMOS
        if demo.name != "resnet50"  # a large model, and minutes
        for variant, fixed in demo.variants
    }


def _edits() -> dict[str, Recorded]:
    """Programs for whose lines edits are offered."""
    from tests.recordings import programs
    from tests.trace.explain.test_repairs import DRAWS, HEAD, PROGRAMS

    bodies = {name: body for name, (body, _) in (*PROGRAMS.items(), *DRAWS.items())}
    return {
        **{
            f"edits/{slug(name)}": partial(_run_text, at, HEAD + body) for at, (name, body) in enumerate(bodies.items())
        },
        **{
            f"programs/{slug(name)}": partial(_run_text, at, programs.text_of(name))
            for at, name in enumerate(programs.PROGRAMS)
        },
    }


def _run_text(number: int, text: str, directory: Path) -> StoredRun:
    """Runs a program from a file in an empty directory."""
    path = directory / "program.py"
    # AutoGraph takes equal functions, at one and the same line of two files, for one.
    path.write_text("\n" * number + text, encoding="utf-8")
    # The files of the programs before are gone, but their text is still in there.
    linecache.clearcache()
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = Path.cwd()
    os.chdir(directory)  # a log names files relative to it
    try:
        sys.modules["program"] = module
        spec.loader.exec_module(module)
        return _run_module(module, directory)
    finally:
        os.chdir(before)


def _run_module(program: Any, directory: Path) -> StoredRun:
    """Runs the step, the model or the loss of a program."""
    import tb_gradflow

    if hasattr(program, "step"):
        step = tb_gradflow.watch(directory / "log", update_freq=1)(program.step)
        for _ in range(2):
            # A step without any gradient may raise, which the log shows.
            with contextlib.suppress(ValueError):
                step()
        step.flush()
        return run_of(tb_gradflow.open_log(directory / "log"))
    if hasattr(program, "model"):
        return _run_of(tb_gradflow.explain(program.model, *program.data))
    return _run_of(tb_gradflow.explain(program.loss, variables=getattr(program, "variables", [program.w])))


def slug(name: str) -> str:
    return re.sub(r"\W+", "_", name.lower()).strip("_")


def _run_of(report: Any) -> StoredRun:
    history: History = report._history()
    return history._run


def say_logs(wanted: Sequence[str]) -> None:
    """Prints the log of each program, or why there is none."""
    import keras

    known = programs()
    for name in wanted:
        keras.utils.clear_session(free_memory=False)
        try:
            with tempfile.TemporaryDirectory() as directory:
                log = packed(known[name](Path(directory)))
                line = f"{LOG}{name}\t{log}"
        except Exception:
            line = f"{FAILURE}{name}\t{json.dumps(traceback.format_exc())}"
        sys.stdout.write(f"\n{line}\n")
        sys.stdout.flush()


def main(patterns: Sequence[str]) -> None:
    known = programs()
    wanted = [name for name in known if not patterns or any(fnmatch.fnmatch(name, each) for each in patterns)]
    logs = {name: dict(group(name)) for name in groups()}
    for start in range(0, len(wanted), TOGETHER):
        command = [sys.executable, "-m", "tests.recordings.record", "--say", *wanted[start : start + TOGETHER]]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        for line in done.stdout.splitlines():
            name, _, content = line.partition("\t")
            if line.startswith(FAILURE):
                sys.stderr.write(f"no log of {name.removeprefix(FAILURE)}: {json.loads(content)}\n")
            elif line.startswith(LOG):
                of, _, short = name.removeprefix(LOG).partition("/")
                if len(content) > MOST_CHARACTERS:
                    sys.stderr.write(f"{of}/{short} is too large: {len(content)} characters\n")
                else:
                    logs.setdefault(of, {})[short] = content
        for of in {name.partition("/")[0] for name in wanted[start : start + TOGETHER]}:
            save_group(of, logs.get(of, {}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--say"]:
        say_logs(sys.argv[2:])
    else:
        main(sys.argv[1:])
