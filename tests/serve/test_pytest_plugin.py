"""The fixture `gradflow`, in pytest processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.serve.processes import environment

PLUGIN = "tb_gradflow.pytest_plugin"

# A training that needs no TensorFlow: a log that somebody else has written.
WRITE = """
import pytest
import tb_gradflow.pytest_plugin
from tests.store.samples import open_writer, step, trace, write_log

def training(gradflow):
    return gradflow._begin()[1]
"""


def pytest_says(program: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(WRITE + program)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, *arguments, "test_it.py"],
        cwd=directory,
        env={**environment(tensorflow=False), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_fails_by_a_training_that_nobody_asserted_anything_about(tmp_path: Path) -> None:
    done = pytest_says("def test_it(gradflow): write_log(training(gradflow))", tmp_path)

    assert "1 failed" in done.stdout
    assert "ERROR  nondiff_comparison" in done.stdout
    assert "Look at it: tensorboard --logdir " in done.stdout
    assert "pytest_runtest_call" not in done.stdout, "the plugin's own frames are nobody's business"


def test_what_was_asserted_is_not_asserted_again(tmp_path: Path) -> None:
    done = pytest_says(
        """
def test_expected(gradflow):
    write_log(training(gradflow))
    gradflow.assert_healthy(expected=["step_filter/*"])
    assert gradflow.reports["training1"].variables["dense/kernel"].status == "connected"

def test_a_later_one(gradflow):
    write_log(training(gradflow))
    gradflow.assert_healthy(expected=["step_filter/*"])
    write_log(training(gradflow))

def test_asserted(gradflow):
    write_log(training(gradflow))
    gradflow.assert_healthy()
""",
        tmp_path,
    )

    assert "2 failed, 1 passed" in done.stdout
    assert "training2, step 2" in done.stdout
    assert "UnhealthyGradients" in done.stdout


def test_a_training_that_recorded_nothing_fails(tmp_path: Path) -> None:
    done = pytest_says("def test_it(gradflow): training(gradflow)", tmp_path)

    assert "1 failed" in done.stdout
    assert "training1 recorded no step" in done.stdout


def test_a_test_that_fails_by_itself_shows_the_report_too(tmp_path: Path) -> None:
    done = pytest_says(
        """
def test_it(gradflow):
    write_log(training(gradflow))
    raise ValueError("No gradients provided for any variable.")

def test_skipped(gradflow):
    write_log(training(gradflow))
    pytest.skip("not here")
""",
        tmp_path,
    )

    assert "1 failed, 1 skipped" in done.stdout
    assert "ValueError: No gradients provided" in done.stdout
    assert done.stdout.count("ERROR  nondiff_comparison") == 1


def test_it_loads_nothing_and_makes_no_directory_until_a_training_begins(tmp_path: Path) -> None:
    program = """
import sys

def test_unused():
    loaded = {"tensorflow", "keras", "tensorboard", "numpy", "tb_gradflow.api"} & set(sys.modules)
    assert not loaded, loaded

def test_used(gradflow):
    assert "numpy" not in sys.modules
"""
    (tmp_path / "test_it.py").write_text(program)
    base = tmp_path / "base"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, f"--basetemp={base}", "test_it.py"],
        cwd=tmp_path,
        env={**environment(tensorflow=True), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    assert not base.exists() or os.listdir(base) == []
