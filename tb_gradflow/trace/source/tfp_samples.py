"""The distribution of TensorFlow Probability that a sample or a density belongs to, found in its frames."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tb_gradflow.trace.source.frames import Frame

_MODULES = "tensorflow_probability.python.distributions"
_METHODS = ("sample", "log_prob")
_FILES = "/" + _MODULES.replace(".", "/") + "/"


def drawn_from(frames: Sequence[Frame]) -> str | None:
    """`tfd.Poisson.sample` or `tfd.Poisson.log_prob`, if the user's line calls that method of a distribution; otherwise
    `None`.

    Args:
        frames: The frames below the user's line, outermost first.
    """
    inside = [(frame.file.replace(os.sep, "/"), frame.function) for frame in frames]
    inside = [(file, function) for file, function in inside if _FILES in file]
    if not inside or inside[0][1] not in _METHODS:
        return None
    for file, _ in inside:
        name = os.path.splitext(os.path.basename(file))[0]
        if name != "distribution":
            known = vars(sys.modules.get(f"{_MODULES}.{name}", object))
            return next((f"tfd.{each}.{inside[0][1]}" for each in known if each.lower() == name.replace("_", "")), None)
    return None
