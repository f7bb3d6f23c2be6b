"""Runs tests of the recorder under other versions of TensorFlow and Keras.

    python -m benchmarks.versions                         the core tests, under the oldest and the newest pair
    python -m benchmarks.versions 2.18.1 --keras 3.6.0    more tests, under the named pair
    python -m benchmarks.versions 2.22.0rc0 --keras nightly    the same, with Keras as it is developed

Each pair gets a separate virtual environment, which is kept for the next time if `--directory` is given. The tests run
on this checkout of the package. `make test` runs the first of these commands, without the pair that its own tests run
under.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Pair:
    """A TensorFlow and a Keras.

    Attributes:
        tensorflow: A version of tensorflow-cpu.
        keras: A version of Keras, or `nightly`; if empty, the newest that pip finds.
        pythons: Versions of Python, in order of preference. The first that is installed is used.
    """

    tensorflow: str
    keras: str
    pythons: tuple[str, ...]

    @property
    def release(self) -> tuple[int, int]:
        major, minor = self.tensorflow.split(".")[:2]
        return int(major), int(minor)

    @property
    def packages(self) -> list[str]:
        """What pip installs for it, but for tf_keras."""
        keras = {"": "keras", "nightly": "keras-nightly"}.get(self.keras, f"keras=={self.keras}")
        # Each TensorFlow Probability is for the TensorFlow of its day.
        probability = "0.25" if self.release >= (2, 18) else "0.24"
        return [f"tensorflow-cpu=={self.tensorflow}", keras, f"tensorflow-probability=={probability}.*"]

    def exact(self, python: str | None) -> list[str]:
        """What makes it this pair, as `_versions` tells it; under the Python that is named, if one is."""
        version = _version(python or _python(self.pythons))
        return [f"Python {version}", f"tensorflow-cpu {self.tensorflow}", f"keras {self.keras}"]

    @property
    def tf_keras(self) -> str:
        """The newest that is not for a later TensorFlow: there is none for one that is not released yet."""
        major, minor = self.release
        return f"tf_keras<{major}.{minor + 1}"


# pyproject.toml, docs/matrix.md and the registries of private symbols name the same versions: a test compares them.
OLDEST = Pair("2.16.1", "3.3.0", ("3.10", "3.11", "3.12"))
NEWEST = Pair("2.21.0", "3.15.1", ("3.13", "3.12", "3.11", "3.10"))
NEXT = Pair("2.22.0rc0", "nightly", ("3.14", *NEWEST.pythons))
"""What a program will be trained with next, as far as it is known: not part of `make test`."""

_TRACE = "tests/trace"

# Without those that need the plugin installed.
_STORE = tuple(f"tests/store/test_{name}.py" for name in ("writer", "directory", "damage", "thinning", "provider"))

# What every version has to pass, in a few minutes. pytest fails if one of them is renamed.
CORE = (
    # The private names of TensorFlow and Keras.
    f"{_TRACE}/safety/test_used_symbols.py",
    f"{_TRACE}/safety/test_private_symbols.py::test_what_is_replaced_is_registered",
    f"{_TRACE}/safety/test_private_symbols.py::test_what_is_replaced_is_there",
    # What depends on how Python itself works.
    f"{_TRACE}/safety/test_stack_space.py",
    f"{_TRACE}/findings/test_snapshots.py::test_kin_are_what_the_object_of_a_variable_holds",
    f"{_TRACE}/findings/test_snapshots.py::test_numbers_that_anybody_would_type_count_beside_their_variable",
    # Gradients and norms are those of a tape; what did not arrive is recorded as what it is.
    f"{_TRACE}/numbers/test_values.py",
    f"{_TRACE}/numbers/test_absence.py::test_each_fate_is_recorded_as_it_was",
    f"{_TRACE}/numbers/test_absence.py::test_infinite_is_not_nan",
    f"{_TRACE}/numbers/test_absence.py::test_a_frozen_layer_was_not_asked_for",
    # Bits: `fit`, a `train_step` of one's own, a compiled one, two optimizers, an unbuilt model.
    *(
        f"{_TRACE}/training/test_harmless.py::test_losses_and_weights_are_identical[{model}]"
        for model in ("sequential", "own_step", "compiled_step", "gan", "subclassed")
    ),
    f"{_TRACE}/training/test_harmless.py::test_several_steps_an_execution",
    f"{_TRACE}/training/test_harmless.py::test_half_precision",
    f"{_TRACE}/training/test_watch.py",
    f"{_TRACE}/training/test_legacy_keras.py::test_the_numbers_are_the_tapes[sequential]",
    f"{_TRACE}/numbers/test_summary.py::test_the_gradients_that_were_given_are_recorded_where_the_writer_records",
    # Eager steps, and `explain`.
    f"{_TRACE}/eager/test_eager_training.py::test_losses_and_weights_are_those_without_the_recorder[own_step]",
    f"{_TRACE}/eager/test_eager_training.py::test_a_value_that_python_took_is_found",
    f"{_TRACE}/eager/test_eager.py::test_an_op_that_cuts_is_named_with_its_line",
    *(
        f"{_TRACE}/explain/test_explain.py::test_{name}"
        for name in (
            "a_cut_is_named",
            "metrics_optimizer_and_compiled_function_are_left_alone",
            "a_function_and_its_variables",
            "a_recorded_gradient_of_a_function_is_the_tapes",
            "a_layer_that_only_the_train_step_knows_must_be_built_before",
        )
    ),
    # The first step whose gradient is not finite.
    f"{_TRACE}/nonfinite/test_nonfinite_step.py::test_that_very_step_is_recorded[dropout and moving averages]",
    f"{_TRACE}/nonfinite/test_nonfinite_step.py::test_that_very_step_is_recorded[nested functions]",
    f"{_TRACE}/nonfinite/test_nonfinite_step.py::test_a_watched_step_is_guarded_too[False]",
    f"{_TRACE}/nonfinite/test_replay.py::test_the_training_is_left_as_it_was",
    # Random numbers of functions that are made from the user's, and errors in them.
    *(
        f"{_TRACE}/training/test_random_numbers.py::test_{name}"
        for name in (
            "a_fit_goes_on_where_the_one_before_has_ended",
            "a_function_that_is_called_twice_draws_what_it_would",
            "a_noisy_step_with_nan_is_caught_with_its_own_noise",
        )
    ),
    f"{_TRACE}/nonfinite/test_guarded_fit.py::test_an_error_of_the_step_is_raised_with_the_users_line",
    # Sessions.
    *(
        f"{_TRACE}/sessions/test_programs.py::test_a_program_trains_the_same_to_the_bit[{name}.py]"
        for name in ("autoencoder", "monitored")
    ),
    # Logs, which depend on Python and NumPy.
    "tests/record",
    *_STORE,
)

# For a pair that is named.
MORE = (
    f"{_TRACE}/training/test_harmless.py",
    f"{_TRACE}/numbers/test_values.py",
    f"{_TRACE}/training/test_watch.py",
    f"{_TRACE}/eager/test_eager_training.py",
    f"{_TRACE}/numbers/test_summary.py",
    f"{_TRACE}/training/test_matrix.py",
    f"{_TRACE}/training/test_legacy_keras.py",
    f"{_TRACE}/numbers/test_absence.py",
    f"{_TRACE}/nonfinite/test_nonfinite_step.py",
    f"{_TRACE}/nonfinite/test_replay.py",
    f"{_TRACE}/nonfinite/test_guarded_fit.py",
    f"{_TRACE}/training/test_random_numbers.py",
    f"{_TRACE}/sessions",
    f"{_TRACE}/safety/test_filesystems.py",
    f"{_TRACE}/safety/test_lost_symbols.py",
    f"{_TRACE}/safety/test_used_symbols.py",
    "tests/record",
    *_STORE,
    "tests/analyse",
)


def main() -> int:
    """The exit status of the tests."""
    options = _options()
    root = Path(options.directory or tempfile.mkdtemp(prefix="versions-"))
    if options.tensorflow is not None:
        pair = Pair(options.tensorflow, options.keras, ())
        python = _installed(pair, options.python or sys.executable, root)
        return _tested(python, options.tests or MORE).returncode
    # While the tests of one pair run, packages are downloaded for the other.
    turn = threading.Lock()

    def status(pair: Pair) -> int:
        python = _installed(pair, options.python or _python(pair.pythons), root)
        with turn:
            began = time.monotonic()
            done = _tested(python, options.tests or CORE, capture_output=True)
            # In one piece: other tests may be writing, too.
            title, took = ", ".join(_versions(python)), time.monotonic() - began
            print(f"{title}\n{done.stdout}{done.stderr}{took:.0f} s", flush=True)
            return done.returncode

    tested = _versions(Path(options.tested)) if options.tested else []
    pairs = [each for each in (OLDEST, NEWEST) if not {*each.exact(options.python)} <= {*tested}]
    with ThreadPoolExecutor() as pool:
        return max(pool.map(status, pairs))


def _installed(pair: Pair, program: str, root: Path) -> Path:
    """The Python of the environment of a pair, which is made if it is not there."""
    environment = root / f"python{_version(program)}-tensorflow{pair.tensorflow}-keras{pair.keras or 'newest'}"
    python, done = environment / "bin" / "python", environment / "installed"
    # TensorBoard before 2.21 imports pkg_resources, which setuptools 82 no longer has.
    wanted = [*pair.packages, "tensorboard", "google-crc32c", "setuptools<82", "pytest>=8", "hypothesis>=6.100"]
    text = "\n".join([*wanted, pair.tf_keras])
    if not done.exists() or done.read_text(encoding="utf-8") != text:
        subprocess.run([program, "-m", "venv", "--clear", str(environment)], check=True)
        _pip(python, *wanted)
        # It asks for the package `tensorflow`, which would be written over tensorflow-cpu.
        _pip(python, "--no-deps", pair.tf_keras)
        done.write_text(text, encoding="utf-8")
    return python


def _pip(python: Path, *wanted: str) -> None:
    # Most of TensorFlow's modules are never imported, and compiling all of them takes longer than the core tests.
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-compile", *wanted], check=True)


def _tested(python: Path, tests: Iterable[str], *, capture_output: bool = False) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    # What is imported is compiled now, once: see `_pip`.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [str(python), "-m", "pytest", "-q", "--disable-warnings", "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env=environ,
        check=False,
        capture_output=capture_output,
        text=True,
    )


def _versions(python: Path) -> list[str]:
    """Those that were tested, as the packages themselves say."""
    code = "import sys, importlib.metadata as m; print('Python', '%d.%d' % sys.version_info[:2]); "
    code += (
        "[print(name, m.version(name)) for name in ('tensorflow-cpu', 'keras', 'keras-nightly', 'tf_keras', 'numpy') "
    )
    code += "if any(m.distributions(name=name))]"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()


def _python(versions: Sequence[str]) -> str:
    """The first of some Pythons that is installed, in the path or by pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for version in versions:
        found = [
            shutil.which(f"python{version}"),
            *sorted(map(str, pyenv.glob(f"{version}.*/bin/python")), reverse=True),
        ]
        for program in (sys.executable, *found):
            if program is not None and _version(program) == version:
                return program
    sys.exit(f"one of these Pythons is needed: {', '.join(versions)}. Found none of them in the path or in {pyenv}.")


def _version(program: str) -> str:
    """Of a Python; empty if it does not run, as a shim of pyenv for one that is not selected."""
    tell = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([program, "-c", tell], check=False, capture_output=True, text=True).stdout.strip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensorflow", nargs="?", help="a version of tensorflow-cpu, such as 2.16.2")
    parser.add_argument(
        "--keras", default="", help="a version of Keras, or nightly (default: the newest that pip finds)"
    )
    parser.add_argument("--python", help="the Python for the environments")
    parser.add_argument("--directory", help="where the environments are created and kept for the next run")
    parser.add_argument("--tested", help="a Python whose versions are tested otherwise, and not here")
    parser.add_argument("tests", nargs="*", help="tests to run instead of the usual ones")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
