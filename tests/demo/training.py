"""Demonstrations that were trained for tests."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_gradflow import open_log
from tb_gradflow.api import Log
from tb_gradflow.cli.demo import telling_report
from tb_gradflow.demo.gallery import Demo
from tb_gradflow.record.report import SourceReport
from tb_gradflow.serve.reports.report import Report


@dataclass(frozen=True, slots=True)
class Trained:
    """A demonstration's runs.

    Attributes:
        logdir: What TensorBoard is given; the runs lie at `<demo>/broken` and `<demo>/fixed` below.
        models: The trained models, by `broken` and `fixed`.
        demo: What was trained.
    """

    logdir: Path
    models: dict[str, Any]
    demo: Demo

    def log(self, variant: str) -> Log:
        return open_log(self.logdir / self.demo.name / variant)

    def report(self, variant: str) -> Report:
        """The report that `tb-gradflow demo` prints."""
        return telling_report(self.log(variant))

    def value(self, variant: str, variable: str) -> Any:
        """What a variable of a trained model is, as an array."""
        [found] = [each for each in self.models[variant].variables if each.path == variable]
        return found.numpy()


def train(demo: Demo, logdir: Path, **options: Any) -> Trained:
    program = demo.load()
    variants = dict(demo.variants)
    directories = {name.rpartition("/")[2]: directory for name, directory in demo.runs(logdir).items()}
    models = {name: program(directories[name], fixed=fixed, **options) for name, fixed in variants.items()}
    return Trained(logdir, models, demo)


def line_of(source: SourceReport | None, demo: Demo) -> str:
    """The line of the demonstration's own file that a source names, once that is really what stands there."""
    assert source is not None
    assert demo.path.as_posix().endswith(source.file)
    assert source.code == linecache.getline(str(demo.path), source.line).strip()
    return source.code
