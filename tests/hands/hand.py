"""What a hand is given: a recorder or none, a directory of its own, and a place for its results."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

MODES = ("plain", "recorded", "run")
"""Without a recorder; with a callback or `watch`; as a program under `tb-gradflow run`."""

LOG = "gradient_log"


class Hand:
    """One hand.

    Attributes:
        mode: One of `MODES`.
        results: What it has kept, in order.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.results: list[str] = []

    def callbacks(self, *others: Any, **options: Any) -> list[Any]:
        """The recorder's callback, if there is one, before the others."""
        import tb_gradflow

        if self.mode != "recorded":
            return list(others)
        return [tb_gradflow.GradFlowCallback(LOG, **{"update_freq": 2, **options}), *others]

    def step(self, function: Callable[..., Any]) -> Any:
        """A compiled step."""
        import tensorflow as tf

        import tb_gradflow

        return tb_gradflow.watch(LOG, update_freq=2)(function) if self.mode == "recorded" else tf.function(function)

    def keep(self, *values: Any) -> None:
        """Bits of arrays, and the text of everything else."""
        self.results.extend(_kept(value) for value in values)

    def fit(self, model: Any, *callbacks: Any, epochs: int = 2, keep: bool = True, **options: Any) -> Any:
        """Trains on six batches in two epochs, and keeps losses and weights."""
        x, y = data()
        history = model.fit(
            x, y, batch_size=8, epochs=epochs, verbose=0, callbacks=self.callbacks(*callbacks), **options
        )
        if keep:
            self.keep(sorted(history.history.items()), *model.get_weights())
        return history


def _kept(value: Any) -> str:
    import numpy as np

    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape} {hashlib.sha256(value.tobytes()).hexdigest()[:16]}"
    return repr(value)


def data(count: int = 24) -> tuple[Any, Any]:
    import numpy as np

    random = np.random.default_rng(3)
    return random.normal(size=(count, 4)).astype("float32"), random.normal(size=(count, 1)).astype("float32")


def model(optimizer: Any = "sgd", **compiled: Any) -> Any:
    """A small one, with a seed."""
    import keras

    made = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(2, "relu", name="inner"),
            keras.layers.Dropout(0.2, seed=5),
            keras.layers.Dense(1, name="outer"),
        ],
        name="net",
    )
    made.compile(optimizer, "mse", **compiled)
    return made


def squared_step(weight: Any) -> Callable[[Any], Any]:
    """A step that brings the square of a weight times its argument down."""
    import tensorflow as tf

    def train(x: Any) -> Any:
        """Of the user."""
        with tf.GradientTape() as tape:
            loss = tf.square(weight * x)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    return train


def run(function: Callable[[Hand], None], mode: str, place: Path) -> dict[str, Any]:
    """What a hand has left, in a directory of its own below another one, which stays."""
    import keras

    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(11)
    hand, before, error = Hand(mode), os.getcwd(), ""
    directory = tempfile.mkdtemp(prefix="hand_", dir=place)
    os.chdir(directory)
    said = io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(said):
        warnings.simplefilter("always")
        try:
            function(hand)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            hand.results.append(_last_of(raised))
        finally:
            os.chdir(before)
    return {
        "directory": directory,
        "results": hand.results,
        "error": _told(error, directory),
        "output": _told(said.getvalue(), directory),
        "warnings": sorted({f"{each.category.__name__}: {each.message}" for each in warned if _is_of_user(each)}),
        "recorder": sorted({str(each.message) for each in warned if "tb_gradflow" in str(each.message)}),
        "files": sorted(_files(directory)),
    }


_CHANGING = re.compile(r"0x[0-9a-f]+|\b\d+s - |\d+m?s/step|\d{4}(_\d\d){5}")
"""Addresses, durations and times."""


def _told(text: str, directory: str) -> str:
    return _CHANGING.sub("…", text.replace(directory, "."))


def _is_of_user(warned: warnings.WarningMessage) -> bool:
    # Which garbage is found when differs from run to run.
    return "tb_gradflow" not in str(warned.message) and not issubclass(warned.category, ResourceWarning)


def _last_of(error: BaseException) -> str:
    """The line of this package that has raised it."""
    lines = [each for each in traceback.extract_tb(error.__traceback__) if "/tests/hands/" in each.filename]
    return f"raised in {lines[-1].name}: {lines[-1].line}" if lines else ""


def _files(directory: str) -> Iterable[str]:
    for path in Path(directory).rglob("*"):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and not name.startswith(f"{LOG}/") and "tfevents" not in name:
            yield _told(name, directory)


def main(families: Iterable[Iterable[Callable[[Hand], None]]]) -> None:
    """Runs the hands in the mode that is given first, and writes what they have left to the file that is second."""
    mode, path, *wanted = sys.argv[1:]
    left = {}
    for each in (each for family in families for each in family):
        if not wanted or each.__name__ in wanted:
            began = time.monotonic()
            left[each.__name__] = run(each, mode, Path(path).resolve().parent)
            print(f"{each.__name__} {time.monotonic() - began:.1f} s", file=sys.__stderr__)
            Path(path).write_text(json.dumps(left, indent=1))
