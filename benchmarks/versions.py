"""Runs the recorder's core tests under another TensorFlow: `python -m benchmarks.versions 2.16.2 --keras 3.3.3`.

Makes a virtual environment of its own with the Python that runs this (`--python` for another), with the TensorFlow and
the Keras that are named, and runs there the tests that every version has to pass, on the package as it lies here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

CORE = (
    "tests/trace/training/test_harmless.py",
    "tests/trace/numbers/test_values.py",
    "tests/trace/training/test_watch.py",
    "tests/trace/eager/test_eager_training.py",
    "tests/trace/numbers/test_summary.py",
    "tests/trace/training/test_matrix.py",
    "tests/trace/training/test_legacy_keras.py",
    "tests/trace/numbers/test_absence.py",
    "tests/trace/nonfinite/test_nonfinite_step.py",
    "tests/trace/nonfinite/test_replay.py",
    "tests/trace/safety/test_filesystems.py",
    "tests/record",
    "tests/store",
    "tests/analyse",
)


def main() -> int:
    """The exit status of the tests."""
    options = _options()
    root = Path(options.directory or tempfile.mkdtemp(prefix="versions-"))
    environment = root / _name(options)
    python = environment / "bin" / "python"
    if not python.exists():
        subprocess.run([options.python, "-m", "venv", str(environment)], check=True)
    # tf_keras asks for the package `tensorflow`, which would be written over tensorflow-cpu.
    legacy = ".".join(options.tensorflow.split(".")[:2])
    # Each TensorFlow Probability is for the TensorFlow of its day.
    probability = "0.25" if int(options.tensorflow.split(".")[1]) >= 18 else "0.24"
    # TensorBoard before 2.21 imports pkg_resources, which setuptools 82 no longer has.
    wanted = [f"tensorflow-cpu=={options.tensorflow}", "tensorboard", "setuptools<82", "pytest>=8", "hypothesis>=6.100"]
    wanted += [f"tensorflow-probability=={probability}.*"]
    wanted += [f"keras=={options.keras}"] if options.keras else []
    _pip(python, *wanted)
    _pip(python, "--no-deps", f"tf_keras=={legacy}.*")
    versions = "import tensorflow, keras, sys; print(sys.version.split()[0], tensorflow.__version__, keras.__version__)"
    subprocess.run([str(python), "-c", versions], check=True)
    tests = options.tests or [name for name in CORE if (ROOT / name).exists()]
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    return done.returncode


def _name(options: argparse.Namespace) -> str:
    """Of the environment: two Pythons, or two Keras, must not share one."""
    tell = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = subprocess.run([options.python, "-c", tell], check=True, capture_output=True, text=True).stdout.strip()
    return f"python{python}-tensorflow{options.tensorflow}-keras{options.keras or 'newest'}"


def _pip(python: Path, *wanted: str) -> None:
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensorflow", help="a version of tensorflow-cpu, such as 2.16.2")
    parser.add_argument("--keras", help="a version of Keras; without it the newest that pip finds")
    parser.add_argument("--python", default=sys.executable, help="the Python to make the environment with")
    parser.add_argument("--directory", help="where environments are made, and kept for the next run")
    parser.add_argument("tests", nargs="*", help="tests to run in the place of the core ones")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
