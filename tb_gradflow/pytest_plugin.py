"""The pytest fixture `gradflow`: records the gradients of every training in a test, which must be healthy.

pytest imports this module at every start. It loads nothing but pytest until a test requests the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tb_gradflow.serve.report import Report
    from tb_gradflow.trace.callback import GradFlowCallback
    from tb_gradflow.trace.watch import Watched

_FIXTURE = "gradflow"


class Trainings:
    """The trainings of one test. Each has its own log in pytest's temporary directory."""

    def __init__(self, make_directory: Callable[[], Path]) -> None:
        self._make_directory = make_directory
        self._root: Path | None = None
        # Name -> a function that brings the log up to date before it is read.
        self._flush: dict[str, Callable[[], None]] = {}
        self._checked: set[str] = set()

    def callback(self, **options: Any) -> GradFlowCallback:
        """A callback for one `fit`: `model.fit(x, y, callbacks=[gradflow.callback()])`.

        The options are those of `tb_gradflow.GradFlowCallback`, without `log_dir`.
        """
        import tb_gradflow

        _, directory = self._begin()
        return tb_gradflow.GradFlowCallback(directory, **options)

    def watch(self, **options: Any) -> Callable[[Callable[..., Any]], Watched]:
        """A decorator for a custom training step, instead of `@tf.function` or on top of it.

        The options are those of `tb_gradflow.watch`, without `log_dir`.
        """
        import tb_gradflow

        name, directory = self._begin()
        watching = tb_gradflow.watch(directory, **options)

        def decorate(step: Callable[..., Any]) -> Watched:
            watched = watching(step)
            self._flush[name] = watched.flush
            return watched

        return decorate

    @property
    def reports(self) -> Mapping[str, Report]:
        """The report of the last recorded step of each training: `training1`, `training2`, …

        Raises LogError if nothing was trained with a callback or a step.
        """
        return {name: self._report(name) for name in self._flush}

    def assert_healthy(self, expected: Iterable[str] = ()) -> None:
        """Raises UnhealthyGradients, with the report, if a training so far is not healthy.

        `expected` are name patterns (fnmatch) of variables that are meant to get no gradient. Trainings that were
        asserted here are not asserted again at the end of the test.
        """
        __tracebackhide__ = True
        patterns = tuple(expected)
        for name in self._flush:
            self._checked.add(name)
            self._report(name).assert_healthy(patterns)

    def complaints(self) -> Iterator[str]:
        """The message for each training that is not healthy and that the test has not asserted itself."""
        from tb_gradflow.errors import LogError

        for name in self._flush:
            if name in self._checked:
                continue
            try:
                report = self._report(name)
            except LogError as error:
                yield f"{name} recorded no step: pass its callback to `fit`, or call its step ({error})"
                continue
            if not report.healthy:
                yield f"{report}\n\nLook at it: tensorboard --logdir {self._root}"

    def _begin(self) -> tuple[str, Path]:
        self._root = self._root or self._make_directory()
        name = f"training{len(self._flush) + 1}"
        self._flush[name] = lambda: None
        return name, self._root / name

    def _report(self, name: str) -> Report:
        import tb_gradflow

        assert self._root is not None
        self._flush[name]()
        report = tb_gradflow.open_log(self._root / name).report()
        # pytest prints the directory; a report is identified by its name.
        report.run = name
        return report


@pytest.fixture
def gradflow(tmp_path_factory: pytest.TempPathFactory) -> Trainings:
    """Records the trainings of a test, which fails at its end if one of them is not healthy."""
    return Trainings(lambda: tmp_path_factory.mktemp(_FIXTURE))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Checks the trainings while the test can still fail: what a fixture raises later is an error, not a failure."""
    outcome = yield
    trainings = getattr(item, "funcargs", {}).get(_FIXTURE)
    if not isinstance(trainings, Trainings):
        return
    said = "\n\n\n".join(trainings.complaints())
    if said and outcome.excinfo is None:
        outcome.force_exception(pytest.fail.Exception(said, pytrace=False))
    elif said and not issubclass(outcome.excinfo[0], pytest.skip.Exception):
        # For example, optimizers raise when no variable gets a gradient. The report says why.
        item.add_report_section("call", "gradients", said)
