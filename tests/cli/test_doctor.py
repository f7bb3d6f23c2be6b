"""`tb-gradflow doctor` in environments that are broken: modules that fail take the place of installed ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tb_gradflow.cli.doctor import advice_for, other_tensorboard
from tests.serve.processes import environment


def doctor(*broken: Path, tensorflow: bool = False, **variables: str) -> tuple[int, dict[str, tuple[str, str]], str]:
    """Exit status; state and words of each check, by its name; and all that was printed."""
    known = environment(tensorflow)
    path = os.pathsep.join((*map(str, broken), known["PYTHONPATH"]))
    done = subprocess.run(
        [sys.executable, "-m", "tb_gradflow", "doctor"],
        env={**known, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stderr == ""
    found = re.findall(r"^(ok|absent|problem) +([^:]+): (.*(?:\n {9}.*)*)", done.stdout, re.MULTILINE)
    return done.returncode, {name: (state, " ".join(said.split())) for state, name, said in found}, done.stdout


def states(checks: dict[str, tuple[str, str]], state: str) -> list[str]:
    return [name for name, (known, _) in checks.items() if known == state]


def test_where_everything_works_it_says_so() -> None:
    status, checks, said = doctor(tensorflow=True)

    assert (status, states(checks, "problem")) == (0, [])
    assert said.endswith("\nEverything works.\n")
    assert re.fullmatch(r"\d+\.\d+\S*, on tensorflow", checks["Keras"][1])
    assert "gradflow" in checks["entry points of plugins"][1]
    assert "gradflow is one of them" in checks["start of TensorBoard"][1]


def test_a_log_can_be_read_without_tensorflow() -> None:
    status, checks, _ = doctor()

    assert (status, states(checks, "absent")) == (0, ["TensorFlow", "Keras", "tf_keras"])
    assert checks["TensorFlow"][1] == "not installed; recording needs it"


def test_it_works_when_nothing_else_does(tmp_path: Path) -> None:
    for name in ("numpy", "google", "setuptools", "tensorflow", "keras", "tensorboard", "werkzeug", "google_crc32c"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('it is broken: ' + __name__)\n")

    status, checks, said = doctor(tmp_path, tensorflow=True)

    assert status == 1
    assert {"NumPy", "protobuf", "TensorFlow", "Keras", "TensorBoard", "start of TensorBoard"} <= {
        *states(checks, "problem")
    }
    assert checks["NumPy"][1] == "RuntimeError: it is broken: numpy"
    assert "Traceback" not in said


def test_setuptools_that_have_become_too_new_are_named(tmp_path: Path) -> None:
    """A module that TensorBoard imports needs `pkg_resources`, as TensorBoard itself did before 2.21."""
    (tmp_path / "grpc.py").write_text("import pkg_resources\n")
    (tmp_path / "pkg_resources.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'pkg_resources'\", name='pkg_resources')\n"
    )

    status, checks, said = doctor(tmp_path)

    assert status == 1
    assert checks["pkg_resources"] == ("absent", "not installed")
    assert states(checks, "problem") == ["start of TensorBoard"]
    assert 'pip install "setuptools<82"' in checks["start of TensorBoard"][1]
    assert "`tb-gradflow view LOGDIR` shows the same page without it" in said


def test_a_plugin_of_another_package_that_keeps_tensorboard_from_starting_is_named(tmp_path: Path) -> None:
    metadata = tmp_path / "other_board-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-board\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[tensorboard_plugins]\nother = other_board:Loader\n")
    (tmp_path / "other_board.py").write_text("import not_there\n")

    status, checks, _ = doctor(tmp_path)

    assert status == 1
    state, said = checks["entry points of plugins"]
    assert state == "problem"
    assert "the TensorBoard plugin other of the package other-board cannot be imported" in said
    assert "No module named 'not_there'" in said
    assert "update or uninstall the package other-board" in said
    assert checks["start of TensorBoard"][0] == "problem"


def test_a_backend_of_keras_that_is_not_installed_is_a_problem() -> None:
    status, checks, _ = doctor(tensorflow=True, KERAS_BACKEND="torch")

    assert (status, states(checks, "problem")) == (1, ["Keras"])
    assert "No module named 'torch'" in checks["Keras"][1]
    assert "set the environment variable `KERAS_BACKEND=tensorflow`" in checks["Keras"][1]


def test_keras_on_another_backend_is_a_problem(tmp_path: Path) -> None:
    """This Keras says what Keras says where JAX is installed."""
    (tmp_path / "keras.py").write_text("class backend:\n    backend = lambda: 'jax'\n__version__ = '3.99'\n")

    status, checks, _ = doctor(tmp_path, tensorflow=True)

    assert status == 1
    assert checks["Keras"][1].startswith("the backend is another one: 3.99, on jax Keras is set")
    assert "set the environment variable `KERAS_BACKEND=tensorflow`" in checks["Keras"][1]


def test_a_command_of_another_python_is_a_problem(tmp_path: Path) -> None:
    command = tmp_path / "tensorboard"
    command.write_text(f"#!{tmp_path}/python3\n")
    command.chmod(0o755)

    status, checks, _ = doctor(PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert (status, states(checks, "problem")) == (1, ["the command tensorboard"])
    assert f"{command} runs in another Python, {tmp_path}/python3" in checks["the command tensorboard"][1]


@pytest.mark.parametrize("first", ["#!{bin}/python\n", "#!/bin/sh\n", "echo\n", ""])
def test_a_command_of_this_python_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    (tmp_path / "tensorboard").write_text(first.format(bin=Path(sys.executable).parent))
    (tmp_path / "tensorboard").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert [each for each in other_tensorboard() if each.state != "ok"] == []


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (["ModuleNotFoundError: No module named 'pkg_resources'"], "setuptools<82"),
        (["ImportError: cannot import name 'runtime_version' from 'google.protobuf' (/x/__init__.py)"], "pip check"),
        (["TypeError: Descriptors cannot be created directly."], "pip check"),
        (
            [
                "google.protobuf.runtime_version.VersionError: Detected incompatible Protobuf Gencode/Runtime versions "
                "when loading event.proto: gencode 6.31.1 runtime 5.29.5."
            ],
            "pip check",
        ),
        (["AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'"], "pip check"),
        (["AttributeError: _ARRAY_API not found", "ImportError: numpy.core.multiarray failed to import"], "numpy<2"),
        (["ModuleNotFoundError: No module named 'torch'"], "KERAS_BACKEND=tensorflow"),
        (["ValueError: Duplicate plugins for name projector"], "install one again"),
        (["ModuleNotFoundError: No module named 'google_crc32c'"], "pip install google_crc32c"),
        (["/x/serve/static/index.js is missing"], "pip install -e ."),
        (["no entry point `gradflow` in the group tensorboard_plugins"], "pip install tensorboard-plugin-gradflow"),
        (["ZeroDivisionError: division by zero"], ""),
    ],
)
def test_what_to_do_follows_from_the_error(errors: list[str], words: str) -> None:
    advice = advice_for(errors)

    assert words in advice if words else advice == ""
