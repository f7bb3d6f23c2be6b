"""`tb-gradflow run`: runs a training program unchanged, records its trainings, and prints their report at the end.

The program runs in its own process, `python SCRIPT ARGS …`, so that it sees the same environment as without this
command, and so that there is a report whatever ends it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tb_gradflow.cli.child import end_as, run_to_end
from tb_gradflow.errors import SetupError
from tb_gradflow.run_options import add_options, recorder_options

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

PACKAGE = Path(__file__).parents[1]
STARTUP = Path(__file__).parent / "startup"
VARIABLE = "TB_GRADFLOW_RUN"

LOGDIR = "logs"

FAILED = 1

# Flags that make Python skip the module that records the program.
_WITHOUT_STARTUP = ("-I", "-E", "-S")


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "run",
        help="run a training program unchanged, and record its trainings",
        usage="tb-gradflow run [options] (SCRIPT | -m MODULE) [ARGS ...]",
        description="Run a training program unchanged, as `python SCRIPT ARGS ...` does, and record each "
        "training in it: each fit of a Keras model, each tf.function that takes a gradient, each "
        "eager loop that takes one, and each training in a tf.compat.v1 session. The report is printed to standard "
        "error when the program ends, however it ends.",
        epilog="Exit status: the program's, or 1 if --fail-on applies, or 2 if the options are invalid.",
    )
    parser.add_argument(
        "--logdir",
        metavar="DIR",
        help=f"where the runs are written (default: {LOGDIR}/SCRIPT/DATE-TIME)",
    )
    add_options(parser)
    parser.add_argument(
        "--on-finding",
        metavar="COMMAND",
        help="run this shell command once for each new finding while the program trains, with the finding as JSON on "
        "its standard input",
    )
    parser.add_argument(
        "--fail-on", choices=("error", "warning"), help="exit with 1 on an error; with warning, on a warning too"
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="run a module, as in `python -m`")
    parser.add_argument("program", metavar="SCRIPT", help="the program")
    arguments = parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")
    arguments.required = False  # or else an error about a missing program would name them too
    own = frozenset(word for action in parser._actions for word in action.option_strings if word.startswith("--"))
    parser.set_defaults(command=run, own_options=own - {"--help"})


def run(options: argparse.Namespace) -> int:
    check_program(options)
    logdir = options.logdir or os.path.join(LOGDIR, stem_of(options), time.strftime("%Y%m%d-%H%M%S"))
    check_writable(logdir)
    with tempfile.TemporaryDirectory(prefix="tb-gradflow-") as scratch:
        manifest = Path(scratch) / "runs.jsonl"
        status = run_to_end(command_of(options), environment(options, logdir, manifest))
        # The program has finished its output.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        names, seen = runs_in(manifest), seen_in(manifest)
    if (said := said_of_misplaced(options)) is not None:
        print(f"\ntb-gradflow: {said}", file=sys.stderr)
    fails = is_reported_to_fail(logdir, names, seen, options)
    if status and names:
        end = f"exit status {status}" if status > 0 else f"signal {-status}"
        print(f"\nThe program ended with {end}: this report is about the steps that it got to.", file=sys.stderr)
    return FAILED if fails else end_as(status)


def check_program(options: argparse.Namespace) -> None:
    """Python would say that the file is not there, and we that nothing was recorded."""
    if options.is_module or options.program == "-" or os.path.exists(options.program):
        return
    if re.fullmatch(r"python[\d.]*(\.exe)?", os.path.basename(options.program)):
        rest = " ".join(options.arguments) or "SCRIPT"
        raise SetupError(f"run starts Python itself: `tb-gradflow run {rest}`, without `{options.program}`")
    raise SetupError(f"{options.program} does not exist: expected a program, as in `python {options.program}`")


def said_of_misplaced(options: argparse.Namespace) -> str | None:
    """About options of this command that stand behind a program which does not mention them."""
    behind = {word.partition("=")[0] for word in options.arguments} & options.own_options
    if not behind or options.is_module:
        return None
    try:
        text = Path(options.program).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    lost = sorted(word for word in behind if word[2:] not in text and word[2:].replace("-", "_") not in text)
    if not lost:
        return None
    return (
        f"{', '.join(lost)}: passed to {options.program}, as everything behind it. Options of `tb-gradflow run` come "
        "before the program"
    )


def is_reported_to_fail(logdir: str, names: list[str], seen: list[str], options: argparse.Namespace) -> bool:
    """Prints the report. Returns whether it has a finding that `--fail-on` names."""
    if not names:
        print(f"\ntb-gradflow: {nothing_recorded(options, seen)}", file=sys.stderr)
        return False
    # Takes longer to load than some programs take to run.
    from tb_gradflow.cli.run_report import report_on

    with contextlib.redirect_stdout(sys.stderr):
        return report_on(logdir, names, options.fail_on)


def command_of(options: argparse.Namespace) -> list[str]:
    """The command that the user would have typed without us."""
    # `multiprocessing` starts its processes with these flags. Python has no public name for this function, and its
    # stubs have none.
    given = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    flags = [flag for flag in given if flag not in _WITHOUT_STARTUP]
    return [sys.executable, *flags, *(["-m"] if options.is_module else []), options.program, *options.arguments]


def environment(options: argparse.Namespace, logdir: str, manifest: Path) -> dict[str, str]:
    """The environment of the program, which restores its original: see `startup/sitecustomize.py`."""
    pythonpath = os.environ.get("PYTHONPATH")
    told = {
        "package": str(PACKAGE),
        "pythonpath": pythonpath,
        "log_dir": logdir if "://" in logdir else os.path.abspath(logdir),
        "manifest": str(manifest),
        "options": {
            **recorder_options(options),
            "on_finding": options.on_finding,
        },
    }
    path = os.pathsep.join(filter(None, (str(STARTUP), pythonpath)))
    return {**os.environ, "PYTHONPATH": path, VARIABLE: json.dumps(told)}


def runs_in(manifest: Path) -> list[str]:
    """The names of the runs that the program created, in order."""
    found: dict[str, None] = {}
    for told in _lines_of(manifest):
        if told.get("is_there"):
            found[told["run"]] = None
        elif "run" in told:
            found.pop(told["run"], None)
    return list(found)


def seen_in(manifest: Path) -> list[str]:
    """Sentences about what may train in the program, and was not recorded when they were written."""
    return list(dict.fromkeys(told["seen"] for told in _lines_of(manifest) if "seen" in told))


def _lines_of(manifest: Path) -> list[dict[str, Any]]:
    text = manifest.read_text(encoding="utf-8") if manifest.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


_MOST_SEEN = 3


def nothing_recorded(options: argparse.Namespace, seen: list[str]) -> str:
    """The message if nothing was recorded."""
    listed = [*seen[:_MOST_SEEN], *([f"There are {len(seen) - _MOST_SEEN} more."] if len(seen) > _MOST_SEEN else [])]
    return " ".join(
        [
            f"nothing was recorded in {options.program}.",
            *listed,
            "tb-gradflow records `fit` and `train_on_batch` of Keras on TensorFlow, every tf.GradientTape in the "
            "program's own process that computes a gradient outside of tf.data, and every `session.run` of a "
            "tf.compat.v1 graph that trains. It skips what the program already records itself.",
        ]
    )


def stem_of(options: argparse.Namespace) -> str:
    """The name by which its author would call the program."""
    name: str = options.program
    if options.is_module:
        return name.rpartition(".")[2]
    return stem_of_script(name)


def stem_of_script(name: str) -> str:
    """The same for a program that is no module."""
    path = Path(name)
    return (path.parent if path.name == "__main__.py" else path).resolve().stem or "program"


def check_writable(logdir: str) -> None:
    """Raises SetupError if no file can be written there. Other filesystems are left to TensorFlow."""
    if "://" in logdir:
        return
    try:
        os.makedirs(logdir, exist_ok=True)
        with tempfile.TemporaryFile(dir=logdir):
            pass
    except OSError as error:
        raise SetupError(
            f"cannot write to --logdir {logdir!r} ({error.strerror or error}): give a directory that this process may "
            "write to"
        ) from error
