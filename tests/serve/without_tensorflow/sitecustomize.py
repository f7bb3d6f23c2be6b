"""Hides TensorFlow and Keras from a process that has this directory on its `PYTHONPATH`."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

HIDDEN = ("tensorflow", "keras", "tf_keras")


class Hiding(MetaPathFinder):
    """Finds nothing, loudly."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)


sys.meta_path.insert(0, Hiding())
