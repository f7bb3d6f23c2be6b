"""Runs a program that was written for an older Keras: `python loader.py [--keras 2|3] [--batches N] PROGRAM`.

What the program imports is found where it is today, data sets and weights that would be downloaded are made up, and a
training ends after some batches or seconds. The program itself is run as it is, from its own directory.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_MOVED = {
    "layers.core": "layers",
    "layers.convolutional": "layers",
    "layers.normalization": "layers",
    "layers.recurrent": "layers",
    "layers.embeddings": "layers",
    "layers.advanced_activations": "layers",
    "layers.noise": "layers",
    "utils.np_utils": "utils",
    "utils.vis_utils": "utils",
    "initializers.initializers_v1": "initializers",
}
"""Modules of Keras that have moved, behind `keras.`."""

_ROOTS = ("tensorflow.python.keras", "tensorflow.keras", "keras")
"""Under which names programs import Keras; Keras 2 has one more beside today's."""


class _OldNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of Keras under the names that they had."""

    def __init__(self, keras: str) -> None:
        self.keras = keras
        self.roots = _ROOTS if keras == "keras" else (*_ROOTS[:-1], keras)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if self.module_for(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def module_for(self, name: str) -> str | None:
        root = next((each for each in self.roots if name == each or name.startswith(each + ".")), None)
        if root is None:
            return None
        rest = name[len(root) + 1 :]
        if rest == "wrappers" or rest.startswith("wrappers."):
            return f"{self.keras}.wrappers"
        rest = _MOVED.get(rest, rest)
        module = f"{self.keras}.{rest}" if rest else self.keras
        # TensorFlow has parts of an old Keras of its own.
        return None if module == name or not _exists(module) else module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = self.module_for(spec.name)
        assert module is not None
        return _wrappers() if module.endswith(".wrappers") else importlib.import_module(module)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _wrappers() -> ModuleType:
    module = ModuleType("keras.wrappers.scikit_learn")
    base: Any = importlib.import_module("sklearn.base").BaseEstimator

    class Estimator(base):
        """Builds and fits a model, as scikit-learn expects it."""

        def __init__(self, build_fn: Callable[[], Any], **options: Any) -> None:
            self.build_fn, self.options = build_fn, options

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {"build_fn": self.build_fn, **self.options}

        def set_params(self, **options: Any) -> Any:
            self.options.update(options)
            return self

        def fit(self, x: Any, y: Any) -> Any:
            self.model = self.build_fn()
            self.model.fit(x, y, **self.options)
            return self

        def score(self, x: Any, y: Any) -> float:
            return -float(self.model.evaluate(x, y, verbose=0, return_dict=True)["loss"])

    vars(module).update(KerasClassifier=Estimator, KerasRegressor=Estimator)
    return module


def _made_up(shape: tuple[int, ...], classes: int) -> Callable[..., Any]:
    """Images of some classes, each of which is bright in places of its own."""

    def load_data(*_: Any, **__: Any) -> Any:
        import numpy as np

        random = np.random.default_rng(0)
        patterns = random.uniform(0, 1, (classes, *shape))

        def part(count: int) -> Any:
            labels = random.integers(0, classes, count)
            noisy = 255 * np.clip(patterns[labels] + random.normal(0, 0.3, (count, *shape)), 0, 1)
            return noisy.astype("uint8"), labels.astype("uint8").reshape(-1, 1) if len(shape) == 3 else labels.astype(
                "uint8"
            )

        return part(4000), part(400)

    return load_data


_DATA = {
    "mnist": ((28, 28), 10),
    "fashion_mnist": ((28, 28), 10),
    "cifar10": ((32, 32, 3), 10),
    "cifar100": ((32, 32, 3), 100),
}


def _irises(name: str) -> Any:
    flowers = importlib.import_module("sklearn.datasets").load_iris(as_frame=True)
    return flowers.data.assign(species=flowers.target_names[flowers.target])


def _replace_downloads(keras: Any) -> None:
    for name, (shape, classes) in _DATA.items():
        # The name and the module of that name may be two.
        for module in (importlib.import_module(f"{keras.__name__}.datasets.{name}"), getattr(keras.datasets, name)):
            vars(module)["load_data"] = _made_up(shape, classes)
    seaborn = ModuleType("seaborn")
    vars(seaborn)["load_dataset"] = _irises
    sys.modules.setdefault("seaborn", seaborn)
    for name in ("VGG16", "VGG19", "ResNet50", "InceptionV3", "MobileNetV2"):
        setattr(keras.applications, name, _without_weights(getattr(keras.applications, name)))
    keras.applications.vgg16.VGG16 = keras.applications.VGG16


def _without_weights(build: Callable[..., Any]) -> Callable[..., Any]:
    def built(*args: Any, **options: Any) -> Any:
        return build(*args, **{**options, "weights": None})

    return built


def _accept_old_options(keras: Any) -> None:
    """`lr` and `decay` of optimizers, and `Input` where it was."""
    keras.models.Input = keras.Input
    for name in ("SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Nadam", "Adamax"):
        optimizer = getattr(keras.optimizers, name)
        optimizer.__init__ = _with_old_options(optimizer.__init__, keras)


def _with_old_options(init: Callable[..., None], keras: Any) -> Callable[..., None]:
    def with_old_options(self: Any, *args: Any, **options: Any) -> None:
        if "lr" in options:
            options["learning_rate"] = options.pop("lr")
        if decay := options.pop("decay", 0.0):
            rate = args[0] if args else options.get("learning_rate", 0.001)
            args = args[1:]
            options["learning_rate"] = keras.optimizers.schedules.InverseTimeDecay(rate, 1, decay)
        init(self, *args, **options)

    return with_old_options


def _as_columns(x: Any) -> Any:
    """Of one number for each row, Keras made a column."""
    import numpy as np

    return x[:, None] if isinstance(x, np.ndarray) and x.ndim == 1 else x


def _as_numbers(y: Any) -> Any:
    """Of labels that are text, such as `"0"`, or objects, TensorFlow made numbers."""
    return y.astype("float32") if getattr(getattr(y, "dtype", None), "kind", "") in ("U", "O") else y


def _end_early(keras: Any, batches: int, seconds: float) -> None:
    class EndEarly(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.left, self.end = batches, time.monotonic() + seconds

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.left -= 1
            if self.left <= 0 or time.monotonic() > self.end:
                self.model.stop_training = True

    fit = keras.Model.fit

    def ended_early(self: Any, x: Any = None, y: Any = None, *args: Any, **options: Any) -> Any:
        options["callbacks"] = [*(options.get("callbacks") or ()), EndEarly()]
        return fit(self, _as_columns(x), _as_numbers(y), *args, **options)

    keras.Model.fit = ended_early


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keras", choices=("2", "3"), default="3")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("program", type=Path)
    options = parser.parse_args(arguments)
    program = options.program.resolve()
    os.chdir(program.parent)
    name = {"2": "tf_keras", "3": "keras"}[options.keras]
    if options.keras == "2":
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    keras = importlib.import_module(name)
    sys.meta_path.insert(0, _OldNames(name))
    _replace_downloads(keras)
    if options.keras == "3":
        _accept_old_options(keras)
    _end_early(keras, options.batches, options.seconds)
    sys.argv = [str(program)]
    # The same lines at the same places.
    text = program.read_text(encoding="utf-8")
    # Of these, TensorFlow itself has imported some, which work no more.
    text = text.replace("tensorflow.python.keras", "tensorflow.keras")
    if options.keras == "2":
        text = re.sub(r"^(\s*)from\s+keras\b", r"\1from tf_keras", text, flags=re.MULTILINE)
        text = re.sub(r"^(\s*)import\s+keras\b", r"\1import tf_keras as keras, tf_keras", text, flags=re.MULTILINE)
    exec(compile(text, str(program), "exec"), {"__name__": "__main__", "__file__": str(program)})


if __name__ == "__main__":
    main(sys.argv[1:])
