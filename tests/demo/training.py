"""Demonstrations that were trained for tests, and what they are promised to say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_gradflow.demo.gallery import Demo


@dataclass(frozen=True, slots=True)
class Trained:
    """A demonstration's runs.

    Attributes:
        logdir: What TensorBoard is given; the runs lie at `<demo>/broken` and `<demo>/fixed` below.
        models: The trained models, by `broken` and `fixed`.
    """

    logdir: Path
    models: dict[str, Any]


def train(demo: Demo, logdir: Path, **options: Any) -> Trained:
    program = demo.load()
    variants = dict(demo.variants)
    directories = {name.rpartition("/")[2]: directory for name, directory in demo.runs(logdir).items()}
    return Trained(
        logdir, {name: program(directories[name], fixed=fixed, **options) for name, fixed in variants.items()}
    )


def promised_cause(demo: Demo) -> str:
    found = re.search(r"Expect: (\w+)\.$", demo.promise)
    assert found is not None, f"{demo.path} does not begin with what to expect: {demo.promise!r}"
    return found[1]
