"""Runs a script of GRIST, which was written for TensorFlow 1: `python loader_v1.py CHECKOUT PROGRAM [--seconds N]`.

The program and the modules of the checkout that it imports are run as they are, with `tf.compat.v1` under the name
`tensorflow` and the images of the checkout. The search for an input that makes the loss NaN is theirs, too, with three
changes: what it does to each pixel in Python, it does to the batch; the range in which it may move a pixel grows by a
twentieth in each iteration, so that seconds are enough where theirs takes up to half an hour; and it ends some steps
after a loss that is NaN, where theirs ends in front of the step that would become NaN, or after some seconds.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.machinery
import os
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

IMAGES = 2000
"""So many that an epoch is short: some of the programs train for 50 of them before they search."""

_STEPS_WITH_NAN = 10


class _Loader(importlib.machinery.SourceFileLoader):
    """The same lines at the same places, with the names of today."""

    checkout: Path

    def get_code(self, fullname: str) -> CodeType:
        text = Path(self.path).read_text(encoding="utf-8")
        text = re.sub(r"^(\s*)import tensorflow as\b", r"\1import tensorflow.compat.v1 as", text, flags=re.MULTILINE)
        return compile(text.replace("/data/scripts/", f"{self.checkout}/scripts/"), self.path, "exec")


class _Images:
    """One part of a data set, as TensorFlow 1 handed it out."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.labels, self.num_examples, self._next = images, labels, len(images), 0

    def next_batch(self, size: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        import numpy as np

        rows = np.arange(self._next, self._next + size) % self.num_examples
        self._next += size
        return self.images[rows], self.labels[rows]


def _digits(checkout: Path) -> tuple[Any, Any]:
    import numpy as np

    def read(name: str, start: int) -> Any:
        path = next(path for path in sorted(checkout.rglob(f"t10k-{name}-ubyte.gz")) if path.stat().st_size)
        return np.frombuffer(gzip.decompress(path.read_bytes()), "uint8")[start:]

    return read("images-idx3", 16).reshape(-1, 28, 28), read("labels-idx1", 8)


def _input_data(checkout: Path) -> ModuleType:
    import numpy as np

    def read_data_sets(*_: Any, one_hot: bool = False, reshape: bool = True, **__: Any) -> Any:
        images, labels = _digits(checkout)
        images = (images / 255).astype("float32").reshape((-1, 784) if reshape else (-1, 28, 28, 1))
        labels = np.eye(10, dtype="float32")[labels] if one_hot else labels

        def part(start: int, count: int) -> _Images:
            return _Images(images[start : start + count], labels[start : start + count])

        return SimpleNamespace(train=part(0, IMAGES), test=part(IMAGES, 500), validation=part(IMAGES + 500, 500))

    module = ModuleType("input_data")
    vars(module).update(read_data_sets=read_data_sets)
    return module


def _replace_downloads(checkout: Path, v1: Any) -> None:
    input_data = _input_data(checkout)
    names = ["tensorflow.examples", "tensorflow.examples.tutorials", "tensorflow.examples.tutorials.mnist"]
    for name in names:
        sys.modules[name] = ModuleType(name)
    vars(sys.modules[names[-1]])["input_data"] = input_data
    package = importlib.import_module("scripts.study_case.ID_3")
    sys.modules[f"{package.__name__}.input_data"] = vars(package)["input_data"] = input_data

    def urlretrieve(url: str, filename: str, *_: Any) -> None:
        part = url.rsplit("/", 1)[-1].replace("train", "t10k")
        path = next(path for path in sorted(checkout.rglob(part)) if path.stat().st_size)
        Path(filename).write_bytes(path.read_bytes())

    vars(urllib.request)["urlretrieve"] = urlretrieve

    def load_data(*_: Any, **__: Any) -> Any:
        images, labels = _digits(checkout)
        return (images[:IMAGES], labels[:IMAGES]), (images[IMAGES:], labels[IMAGES:])

    v1.keras.datasets.mnist.load_data = load_data


def _complete(v1: Any) -> None:
    """What TensorFlow 1 had beside `tf.compat.v1`."""

    def l2_regularizer(scale: float) -> Any:
        return lambda weights: scale * v1.nn.l2_loss(weights)

    def flatten(inputs: Any) -> Any:
        return v1.reshape(inputs, [-1, inputs.shape[1:].num_elements()])

    layers = ModuleType("tensorflow.contrib.layers")
    vars(layers).update(l2_regularizer=l2_regularizer, flatten=flatten)
    v1.contrib = sys.modules["tensorflow.contrib"] = ModuleType("tensorflow.contrib")
    sys.modules[layers.__name__] = vars(v1.contrib)["layers"] = layers
    named = v1.nn.softmax_cross_entropy_with_logits
    v1.nn.softmax_cross_entropy_with_logits = lambda logits=None, labels=None, **rest: named(
        logits=logits, labels=labels, **rest
    )


def _accept_ragged_arrays() -> None:
    import numpy as np

    make = np.array

    def array(rows: Any, *args: Any, **options: Any) -> Any:
        try:
            return make(rows, *args, **options)
        except ValueError:
            return make([*rows, None], dtype=object)[:-1]

    vars(np)["array"] = array


def _search_until_seen(seconds: float) -> None:
    import numpy as np

    searching = importlib.import_module("scripts.utils.tf_utils")
    started, growth, left = time.monotonic(), 1.05, _STEPS_WITH_NAN

    def loss_checker(self: Any, loss_val: Any, log_msg: Any = None) -> None:
        nonlocal left
        if left < _STEPS_WITH_NAN or not np.isfinite(loss_val).all():
            left -= 1

    def check_time(self: Any) -> None:
        self.iter_count += 1
        if not left or time.monotonic() - started > seconds:
            print(f"{'finite' if left == _STEPS_WITH_NAN else 'broken'} after {self.iter_count} iterations", flush=True)
            sys.exit()
        self.change *= growth
        if pixels := getattr(self, "pixels", None):
            pixels.update(max=pixels["max"] * growth, min=pixels["min"] * growth)

    def moved(
        batch: Any, gradient: Any, pixle_boundary: Any, update_list: Any, clip_list: Any, change: float, **rest: Any
    ) -> Any:
        after = batch - change * np.sign(gradient)
        rows = tuple(range(1, batch.ndim))
        outside = (after > pixle_boundary["max"]) | (after < pixle_boundary["min"])
        count = min(len(batch), len(update_list))
        updates, clips = np.mean(gradient != 0, rows)[:count], np.mean(outside, rows)[:count]
        updates, clips = updates + update_list[:count], clips + clip_list[:count]
        return after, updates, clips, rest["useful_update_list"]

    searching.TensorFlowScheduler.loss_checker = loss_checker
    searching.TensorFlowScheduler.check_time = check_time
    searching.GradientSearcher.iterative_grist = staticmethod(moved)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkout", type=Path)
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args(arguments)
    checkout, program = options.checkout.resolve(), options.program.resolve()
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # which has `tf.layers`
    v1: Any = importlib.import_module("tensorflow.compat.v1")
    v1.disable_v2_behavior()
    _Loader.checkout = checkout
    finder = importlib.machinery.FileFinder.path_hook((_Loader, [".py"]))
    sys.path_hooks.insert(0, lambda path: finder(path) if Path(path).is_relative_to(checkout) else _refused())
    sys.path[:0] = [str(program.parent), str(checkout)]
    _complete(v1)
    _accept_ragged_arrays()
    _replace_downloads(checkout, v1)
    _search_until_seen(options.seconds)
    sys.argv = [str(program)]
    with tempfile.TemporaryDirectory() as scratch:
        # What it writes stays out of the checkout.
        for path in program.parent.iterdir():
            (Path(scratch) / path.name).symlink_to(path)
        os.chdir(scratch)
        # `tf.app.run` looks for the program's `main` there.
        module = sys.modules["__main__"] = ModuleType("__main__")
        vars(module)["__file__"] = str(program)
        exec(_Loader("__main__", str(program)).get_code("__main__"), vars(module))


def _refused() -> Any:
    raise ImportError


if __name__ == "__main__":
    main(sys.argv[1:])
