"""`tb-gradflow doctor`: what is installed, and why TensorBoard or the plugin does not start.

This process imports nothing that may be broken: whatever is checked is checked in a process of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tb_gradflow.cli.terminal import look
from tb_gradflow.plain import clean, one_line
from tb_gradflow.serve.terminal.text import Look, Role
from tb_gradflow.version import VERSION

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

GOOD, FAILED = 0, 1

LONGEST = 180
"""Seconds. On a slow disk, TensorFlow takes a minute to import for the first time."""

# A script does not look for modules in the working directory, and neither do these.
_BEGIN = "import sys\nif sys.path[:1] == ['']: del sys.path[0]\n"

# Where Python ends while TensorBoard's threads import TensorFlow, these may crash it.
_STARTED = """\
import json, os, sys, tempfile, urllib.request
from tensorboard import default, program
board = program.TensorBoard(plugins=default.get_plugins())
with tempfile.TemporaryDirectory() as directory:
    board.configure(argv=["tensorboard", "--logdir", directory, "--port", "0", "--load_fast", "false"])
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    plugins = json.load(direct.open(board.launch() + "data/plugins_listing"))
if "gradflow" not in plugins:
    sys.exit("the plugin is not among those of TensorBoard: " + ", ".join(plugins))
print(f"{len(plugins)} plugins, gradflow is one of them", flush=True)
os._exit(0)
"""

_ENTRY_POINTS = """\
import sys
from importlib.metadata import entry_points
known = entry_points(group="tensorboard_plugins")
if "gradflow" not in known.names:
    sys.exit("no entry point `gradflow` in the group tensorboard_plugins")
for each in known:
    try:
        each.load()
    except Exception as error:
        name = f"{each.name} of the package {each.dist.name}"
        raise ImportError(f"the TensorBoard plugin {name} cannot be imported") from error
print(", ".join(sorted(known.names)))
"""

_KERAS = """\
import sys, keras
said = f"{keras.__version__}, on {keras.backend.backend()}"
print(said) if said.endswith("tensorflow") else sys.exit(f"the backend is another one: {said}")
"""

_PAGE = """\
import pathlib, sys, tb_gradflow
script = pathlib.Path(tb_gradflow.__file__).parent / "serve" / "static" / "index.js"
print(script) if script.is_file() else sys.exit(f"{script} is missing")
"""

Need = Literal["always", "recording", "never"]


@dataclass(frozen=True, slots=True)
class Check:
    """What a process of its own tries.

    Attributes:
        name: As the field calls it.
        code: Prints what is there; fails if that does not work.
        module: The module whose absence means that the package is not installed; empty if there is no such package.
        need: What does not work without it. It is a problem if it is broken, whatever needs it.
    """

    name: str
    code: str
    module: str = ""
    need: Need = "always"


def _package(name: str, module: str, need: Need) -> Check:
    return Check(name, f"import {module}\nprint({module}.__version__)", module, need)


CHECKS: tuple[Check, ...] = (
    _package("NumPy", "numpy", "always"),
    _package("protobuf", "google.protobuf", "always"),
    # Not imported: it replaces parts of the standard library.
    Check("setuptools", "from importlib.metadata import version\nprint(version('setuptools'))", "setuptools", "never"),
    Check("pkg_resources", "import pkg_resources\nprint('is there')", "pkg_resources", "never"),
    _package("TensorFlow", "tensorflow", "recording"),
    Check("Keras", _KERAS, "keras", "never"),
    _package("tf_keras", "tf_keras", "never"),
    _package("TensorBoard", "tensorboard", "always"),
    Check("reading logs", "import tb_gradflow.serve.server\nprint('works')"),
    Check("the page", _PAGE),
    Check("entry points of plugins", _ENTRY_POINTS),
    Check("start of TensorBoard", _STARTED),
)

_SETUPTOOLS = (
    "TensorBoard before 2.21 needs `pkg_resources`, which setuptools 82 and later do not have: "
    '`pip install "setuptools<82"`, or install TensorBoard 2.21 or later.'
)
_PROTOBUF = (
    "The installed protobuf does not fit a package that uses it. `pip check` names such packages and the versions that "
    "they need: install one of these, or update the packages."
)
_NUMPY = (
    "A package was built for another version of NumPy: update that package, or install the NumPy that it was built "
    'for, such as `pip install "numpy<2"`.'
)
_BACKEND = (
    "Keras is set to another backend, and trainings of Keras are recorded on TensorFlow: set the environment variable "
    '`KERAS_BACKEND=tensorflow`, or `"backend": "tensorflow"` in the file keras.json.'
)

ADVICE: tuple[tuple[str, str], ...] = (
    (r"pkg_resources", _SETUPTOOLS),
    (r"google\.protobuf|[Pp]rotobuf|Descriptors cannot be created|GetPrototype", _PROTOBUF),
    (r"NumPy 1|_ARRAY_API|numpy\.core\.multiarray|numpy\.dtype size changed", _NUMPY),
    (r"No module named '(jax|torch|openvino|mlx)'|the backend is another one", _BACKEND),
    (
        r"Duplicate plugins for name",
        "Two packages contain TensorBoard, or two a plugin of that name: `pip list` shows them. Uninstall all of them, "
        "such as `tensorboard` and `tb-nightly`, and install one again.",
    ),
    (
        r"no entry point `gradflow`",
        "TensorBoard finds plugins by the entry points of installed packages: "
        "`pip install tensorboard-plugin-gradflow` in the environment of this Python, or `pip install -e .` in a "
        "checkout.",
    ),
    (
        r"index\.js is missing",
        "The page was not built: install the released package, or run `pip install -e .` in a checkout, with Node 20.",
    ),
    (
        r"the TensorBoard plugin (?!gradflow)\S+ of the package (\S+)",
        r"TensorBoard does not start with a plugin that it cannot import: update or uninstall the package \1.",
    ),
    (r"No module named '([\w]+)", r"A package is missing: `pip install \1`, or install again the one that needs it."),
)
"""Regular expression for an error -> what to do; the first that fits an error, or what it comes from, is printed."""

_ERROR = re.compile(r"[\w.]*(Error|Exception)\b")


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a check.

    Attributes:
        state: absent: it is not installed, and what is tried here does not need it.
        said: What is there, or the error.
        advice: What to do about it; may be empty.
    """

    name: str
    state: Literal["ok", "absent", "problem"]
    said: str
    advice: str = ""


_ROLES: dict[str, Role] = {"ok": "good", "absent": "dim", "problem": "error"}


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "doctor",
        help="print what is installed, and why TensorBoard or the plugin does not start",
        description="Print what is installed, try whether TensorBoard starts with the plugin, and say what to do if it "
        "does not. Takes up to half a minute, because TensorFlow is imported. Changes nothing.",
        epilog="Exit status: 0 if everything works, 1 otherwise.",
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    results: list[Result] = []
    for result in examined():
        results.append(result)
        print("\n".join(lines_of(result, look())), flush=True)
    problems = [each for each in results if each.state == "problem"]
    works = {each.name for each in results if each.state == "ok"}
    if not problems:
        print("\nEverything works.")
        return GOOD
    print(f"\n{len(problems)} of {len(results)} checks failed.")
    if {"reading logs", "the page"} <= works and "start of TensorBoard" not in works:
        print("Until TensorBoard starts: `tb-gradflow view LOGDIR` shows the same page without it.")
    return FAILED


def examined() -> Iterator[Result]:
    """The results, as soon as those before them are there."""
    yield Result("Python", "ok", f"{sys.version.split()[0]}, {sys.executable}")
    yield Result("tb_gradflow", "ok", f"{VERSION}, {Path(__file__).parents[1]}")
    # Two at a time: several imports of TensorFlow at once would take gigabytes.
    with ThreadPoolExecutor(2) as threads:
        yield from threads.map(result_of, CHECKS)
    yield from other_tensorboard()


def result_of(check: Check) -> Result:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore", **os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _BEGIN + check.code],
            env=quiet,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Result(check.name, "problem", f"did not end within {LONGEST} seconds")
    said = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode == 0:
        return Result(check.name, "ok", said)
    lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
    # The message of an error may have several lines; and an error may come from others, which are printed before it.
    errors = [line for line in lines if _ERROR.match(line)] or lines[-1:]
    missing = (f"No module named '{check.module}'", f"No package metadata was found for {check.module}")
    if check.need != "always" and any(each in errors[-1] for each in missing):
        return Result(check.name, "absent", "not installed" + "; recording needs it" * (check.need == "recording"))
    said = errors[-1] + (f" (because of {errors[0]})" if len(errors) > 1 else "")
    return Result(check.name, "problem", said, advice_for(errors))


def advice_for(errors: Sequence[str]) -> str:
    """Empty if there is none."""
    found = ((re.search(pattern, each), advice) for pattern, advice in ADVICE for each in errors)
    return next((match.expand(advice) for match, advice in found if match is not None), "")


def other_tensorboard() -> Iterator[Result]:
    """A problem if the command `tensorboard` belongs to another Python, which may not have the plugin."""
    command = shutil.which("tensorboard")
    if command is None:
        return
    with open(command, "rb") as script:
        first = script.readline().decode(errors="replace").strip()
    interpreter = first.removeprefix("#!").split(" ")[0] if first.startswith("#!") else ""
    if "python" not in os.path.basename(interpreter):
        return
    ours, theirs = (os.path.realpath(os.path.dirname(path)) for path in (sys.executable, interpreter))
    if ours == theirs:
        yield Result("the command tensorboard", "ok", command)
    else:
        yield Result(
            "the command tensorboard",
            "problem",
            f"{command} runs in another Python, {interpreter}",
            "That one may not have the plugin: `python -m tensorboard.main --logdir LOGDIR` takes this Python's.",
        )


def lines_of(result: Result, look: Look) -> Iterator[str]:
    """What is there; for a problem, the error and what to do."""
    role = _ROLES[result.state]
    mark = look.paint(f"{result.state:<8}", role)
    yield f"{mark} {result.name}: {one_line(clean(result.said))}"
    yield from look.prose(result.advice, "         ") if result.advice else ()
