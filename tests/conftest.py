"""What tests of several packages need: records made by hand, and logs of them."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from tb_gradflow.demo.gallery import chosen
from tests.demo.training import Trained, train

# The longest by computing time: were one of them begun last, all other workers would wait for it.
LONG = (
    "cases/test_edits.py",
    "cases/test_cases.py",
    "cli/test_run.py",
    "seeds/test_programs.py",
    "trace/training/test_replicas.py",
    "trace/nonfinite/test_replay.py",
    "trace/training/test_programs.py",
    "trace/sessions/test_programs.py",
    "trace/safety/test_private_symbols.py",
    "trace/safety/test_python_runs_once.py",
    "trace/nonfinite/test_births.py",
    "trace/training/test_harmless.py",
    "trace/training/test_legacy_keras.py",
    "trace/training/test_matrix.py",
    "demo/test_demos.py",
    "gradcheck/test_tensor_functions.py",
    "trace/training/test_replicas_others.py",
    "trace/training/test_control_order.py",
    "trace/numbers/test_every_optimizer.py",
    "trace/safety/test_failures.py",
    "trace/safety/test_faults.py",
    "docs/test_recipes.py",
    "trace/nonfinite/test_guarded_fit.py",
    "gradcheck/test_numpy_functions.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {f"/tests/{name}": place for place, name in enumerate(LONG)}

    def place(item: pytest.Item) -> int:
        return next((order[name] for name in order if item.path.as_posix().endswith(name)), len(order))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What the tests' modules have imported is never garbage. Keras looks through all of it whenever a session is
    cleared, which took a quarter of the time of the recorder's tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def what_a_file_leaves_is_never_searched() -> Iterator[None]:
    """TensorFlow never frees the graph of a function that creates variables, as each `fit` does. After some hundreds of
    tests, each search for references or garbage would take a second. And the steps that are kept for fixes to be tried
    in them at the end of a program belong to no other file."""
    yield
    if (kept := sys.modules.get("tb_gradflow.trace.log.findings")) is not None:
        kept._endings.clear()
        kept._untried.clear()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """No test may leave functions eager, a recording active or NumPy's functions replaced. The error names that test,
    and those after it begin without."""
    yield
    left = []
    tensorflow, hooks = sys.modules.get("tensorflow"), sys.modules.get("tb_gradflow.trace.program.hooks")
    if tensorflow is not None and tensorflow.config.functions_run_eagerly():
        tensorflow.config.run_functions_eagerly(False)
        left.append("functions run eagerly")
    if hooks is not None and hooks.current() is not None:
        hooks.stop()
        left.append("trainings are recorded")
    if not isinstance(vars(np)["sqrt"], np.ufunc):
        left.append("NumPy's functions are replaced")
    assert not left, f"after this test {' and '.join(left)}"


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the system's Chromium; `make test` installs one where it can."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    pytest.fail("no Chromium found: install it (on Debian, as root: apt-get install chromium)")


@pytest.fixture(scope="session")
def step_filter(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The runs `step_filter/broken` and `step_filter/fixed`, trained as `tb-gradflow demo` trains them."""
    [demo] = chosen(["step_filter"])
    return train(demo, tmp_path_factory.mktemp("step_filter"))
