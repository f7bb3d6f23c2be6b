"""The programs of the demonstration by name, known without importing them: that would load TensorFlow."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_gradflow.errors import SetupError

Train = Callable[..., Any]
"""`train(log_dir, fixed=…)`: trains a model with the recorder, and returns it."""

NO_TENSORFLOW = (
    "the demonstration trains models and needs {missing}, which is not installed: `pip install tensorflow`, or "
    "`pip install 'tensorboard-plugin-gradflow[tensorflow]'`"
)


EXPECT = " Expect: "


@dataclass(frozen=True, slots=True)
class Demo:
    """A program that trains a broken model and a fixed version of it.

    Attributes:
        name: The name of its module in this package, and of the directory of its runs.
        variants: Its runs, by the name that each has below that directory; the value is `fixed` of `train`.
    """

    name: str
    variants: tuple[tuple[str, bool], ...] = (("broken", False), ("fixed", True))

    @property
    def promise(self) -> str:
        """The first line of the program: what the model is, and the expected cause."""
        text = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        return text.partition("\n")[0]

    @property
    def title(self) -> str:
        """What the model is."""
        return self.promise.partition(EXPECT)[0]

    @property
    def cause(self) -> str:
        """The expected cause, one of docs/causes.md."""
        return self.promise.partition(EXPECT)[2].removesuffix(".")

    @property
    def path(self) -> Path:
        return Path(__file__).with_name(f"{self.name}.py")

    def runs(self, logdir: str | os.PathLike[str]) -> dict[str, str]:
        """Name of each run -> the directory in which it is recorded."""
        return {f"{self.name}/{variant}": os.path.join(logdir, self.name, variant) for variant, _ in self.variants}

    def load(self) -> Train:
        """The program's `train`. Raises SetupError where TensorFlow is missing."""
        try:
            module = importlib.import_module(f"tb_gradflow.demo.{self.name}")
        except ModuleNotFoundError as error:
            if error.name and error.name.partition(".")[0] in ("tensorflow", "keras"):
                raise SetupError(NO_TENSORFLOW.format(missing=error.name)) from error
            raise
        train: Train = module.train
        return train


DEMOS = tuple(
    Demo(name)
    for name in (
        "step_filter",
        "resnet50",
        # Steps where whole numbers are needed, and what people write instead.
        "floor_detour",
        "quantised_by_cast",
        "custom_floor",
        "round_by_clipping",
        "steep_sigmoid",
        # Positions and branches.
        "learnt_position",
        "bump_in_cond",
        "bump_with_where",
        "untaken_branch",
        # Computations that the tape does not record.
        "result_variable",
        "perturbed_weight",
        "silent_none",
        # Gradients that arrive, but are zero.
        "own_sample",
        "masked_lstm",
        "adam_moves",
        "masked_elements",
    )
)


def chosen(names: list[str]) -> tuple[Demo, ...]:
    """The demonstrations with these names, in the order of the gallery; all of them if there are no names."""
    known = {demo.name: demo for demo in DEMOS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SetupError(f"there is no demonstration {unknown[0]!r}: there are {', '.join(known)}")
    return tuple(demo for demo in DEMOS if demo.name in names or not names)
