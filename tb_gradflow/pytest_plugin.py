"""The pytest fixture `gradflow`: records the gradients of every training in a test, which must be healthy.

pytest imports this module at every start. It loads nothing but pytest until a test requests the fixture.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tb_gradflow.recorded import Recorded

if TYPE_CHECKING:
    from tb_gradflow.serve.reports.report import Report
    from tb_gradflow.trace.callback import GradFlowCallback
    from tb_gradflow.trace.watch import Watched

_FIXTURE = "gradflow"


class Trainings:
    """The trainings of one test: those that are recorded as `tb-gradflow run` records them, and those with a callback
    or a watched step of this fixture. Each has its own log in pytest's temporary directory.
    """

    def __init__(self, make_directory: Callable[[], Path]) -> None:
        self._make_directory = make_directory
        self._root: Path | None = None
        self._recorded = Recorded(lambda: str(self._directory()))
        # Name -> a function that brings the log up to date before it is read. Only for callbacks and watched steps.
        self._flush: dict[str, Callable[[], None]] = {}
        self._checked: set[str] = set()

    def start(self) -> None:
        """Starts recording trainings."""
        self._recorded.start()

    def stop(self) -> None:
        """Stops recording trainings."""
        self._recorded.stop()

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
        """The report of the last recorded step of each training so far.

        Names are those of `tb-gradflow run`: the name of the model or the function, or the line of a loop. The
        first callback or watched step of this fixture is called `training1`.
        """
        return {name: report for name in self._names() if (report := self._report(name)) is not None}

    def assert_healthy(self, expected: Iterable[str] = ()) -> None:
        """Raises UnhealthyGradients, with the report, if a training so far is not healthy; and LogError if there is
        none.

        `expected` are name patterns (fnmatch) of variables that are meant to get no gradient. Trainings that were
        checked here are not checked again at the end of the test.
        """
        __tracebackhide__ = True
        from tb_gradflow.errors import LogError

        patterns = tuple(expected)
        names = self._names()
        if not names:
            raise LogError(
                "nothing was recorded in this test: the fixture `gradflow` records `fit` and `train_on_batch` of Keras "
                "on TensorFlow, and every tf.GradientTape that computes a gradient, in this process"
            )
        for name in names:
            self._checked.add(name)
            if (report := self._report(name)) is not None:
                report.assert_healthy(patterns)

    def complaints(self) -> Iterator[str]:
        """The message for each training that is not healthy and that the test has not asserted itself."""
        from tb_gradflow.errors import LogError

        for name in self._names():
            if name in self._checked:
                continue
            try:
                report = self._report(name)
            except LogError as error:
                yield f"{name} recorded no step: pass its callback to `fit`, or call its step ({error})"
                continue
            if report is not None and not report.healthy:
                yield f"{report}\n\nLook at it: tensorboard --logdir {self._root}"

    def _names(self) -> list[str]:
        self._recorded.flush()  # a loop has no run before its first step is over
        return [*self._flush, *self._recorded.names]

    def _begin(self) -> tuple[str, Path]:
        root = self._directory()
        names = (f"training{number}" for number in itertools.count(len(self._flush) + 1))
        name = next(name for name in names if not (root / name).exists())
        (root / name).mkdir()  # so that no model of the test gets this name
        self._flush[name] = lambda: None
        return name, root / name

    def _directory(self) -> Path:
        self._root = self._root or self._make_directory()
        return self._root

    def _report(self, name: str) -> Report | None:
        """None for a training that raised before its first step was recorded. Raises LogError if a callback or a
        watched step was never used.
        """
        import tb_gradflow
        from tb_gradflow.errors import LogError

        self._flush.get(name, self._recorded.flush)()
        try:
            report = tb_gradflow.open_log(self._directory() / name).report()
        except LogError:
            if name in self._flush:
                raise
            return None
        # pytest prints the directory; a report is identified by its name.
        report.run = name
        return report


@pytest.fixture
def gradflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainings]:
    """Records the trainings of a test, which fails at its end if one of them is not healthy."""
    trainings = Trainings(lambda: tmp_path_factory.mktemp(_FIXTURE))
    trainings.start()
    yield trainings
    trainings.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Checks the trainings while the test can still fail: what a fixture raises later is an error, not a failure."""
    outcome = yield
    trainings = getattr(item, "funcargs", {}).get(_FIXTURE)
    if not isinstance(trainings, Trainings):
        return
    trainings.stop()
    said = "\n\n\n".join(trainings.complaints())
    if said and outcome.excinfo is None:
        outcome.force_exception(pytest.fail.Exception(said, pytrace=False))
    elif said and not issubclass(outcome.excinfo[0], pytest.skip.Exception):
        # For example, optimizers raise when no variable gets a gradient. The report says why.
        item.add_report_section("call", "gradients", said)
