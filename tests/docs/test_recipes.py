"""What the documentation tells people to write works when it is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import keras
import pytest

import tb_gradflow
from tb_gradflow.gradcheck.report import Verdict
from tests.serve.processes import environment

DOCS = Path(__file__).parents[2] / "docs"
README = Path(__file__).parents[2] / "README.md"


PLUGIN = "tb_gradflow.pytest_plugin"


def code_in(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def pytest_says(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    (directory / "test_gradients.py").write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, "test_gradients.py"],
        cwd=directory,
        # The checkout may be installed with the plugin, or by itself on the path.
        env={**environment(tensorflow=True), "CUDA_VISIBLE_DEVICES": "-1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_recipe_for_pytest_passes_and_fails_with_the_report(tmp_path: Path) -> None:
    recipe = code_in(DOCS / "testing.md")[0]
    broken = recipe.replace("keras.layers.Dense(1)]", "keras.layers.Dense(1), keras.layers.Lambda(keras.ops.round)]")

    assert pytest_says(recipe, tmp_path).returncode == 0
    failed = pytest_says(broken, tmp_path)
    assert failed.returncode == 1
    assert "UnhealthyGradients" in failed.stdout
    assert "ERROR  nondiff_rounding" in failed.stdout


def test_the_other_lines_about_tests_work_on_its_report() -> None:
    keras.utils.clear_session()  # the first layer of a kind is named without a number
    recipe, *others, _, _ = code_in(DOCS / "testing.md")
    namespace: dict[str, Any] = {}
    exec(recipe, namespace)
    import numpy as np
    import tensorflow as tf

    x, y = np.ones((4, 8), "float32"), np.ones((4, 1), "float32")
    model = namespace["make_model"]()
    weights = tf.Variable([2.0], name="weights")
    namespace |= {
        "model": model,
        "x": x,
        "y": y,
        "variables": [weights],
        "loss_fn": lambda x, y: tf.reduce_mean(x * weights - y),
    }
    namespace["report"] = tb_gradflow.explain(model, x, y)
    name = next(name for name in namespace["report"].variables if name.endswith("dense/kernel"))

    for code in others:
        exec(code.replace("sequential/dense/kernel", name), namespace)


def test_the_recipe_for_the_fixture_passes_and_fails_with_the_report(tmp_path: Path) -> None:
    recipe, *_, plugin, every = code_in(DOCS / "testing.md")
    program = f"import tensorflow as tf, pytest\n{recipe}\n\n{plugin}\n\n{every}"
    broken = program.replace("tf.reduce_sum(weights * x)", "tf.reduce_sum(tf.round(weights) * x)")

    assert pytest_says(program, tmp_path).returncode == 0
    failed = pytest_says(broken, tmp_path)
    assert failed.returncode == 1
    assert "ERROR  nondiff_rounding" in failed.stdout


def test_the_page_on_checking_gradients_says_what_its_program_does() -> None:
    page = DOCS / "checking_gradients.md"
    wrong, right, slow, trained = code_in(page)
    namespace: dict[str, Any] = {}

    exec(wrong, namespace)
    first, second, *_ = str(namespace["check"]).splitlines()
    assert f"    {first}\n    {second}\n" in page.read_text(encoding="utf-8")
    exec(right, namespace)
    assert namespace["check"].arguments["0"].verdict == "agrees"
    exec(slow, namespace)
    assert namespace["check"].correct
    exec(trained, namespace)
    assert "diverges" in str(namespace["check"])
    verdicts = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(verdicts) == sorted(get_args(Verdict))


@pytest.mark.parametrize("page", [DOCS / "start.md", README], ids=lambda page: page.name)
def test_what_the_first_page_says_to_write_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import keras
    import numpy as np
    import tensorflow as tf

    monkeypatch.chdir(tmp_path)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
    names = {"tf": tf, "model": model, "x": x, "y": y, "loss_fn": keras.losses.MeanSquaredError()}
    namespace: dict[str, Any] = {**names, "tb_gradflow": tb_gradflow, "optimizer": keras.optimizers.SGD()}

    for code in code_in(page):
        exec(code.replace('@tb_gradflow.watch("logs/run1")', "@tb_gradflow.watch('logs/run2')"), namespace)
    if "train_step" in namespace:
        # Line numbers of code that stands in no file are asked for too.
        namespace["train_step"](tf.constant(x), tf.constant(y))

    assert (tmp_path / "logs" / "run1" / "gradflow").is_dir()


def test_every_link_between_the_pages_leads_somewhere() -> None:
    pages = [README, *DOCS.glob("*.md"), *(DOCS / "causes").glob("*.md")]

    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} leads to {target}"
