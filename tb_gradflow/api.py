"""The functions of the public contract: `open_log` and `compare` need no TensorFlow, and `explain` loads it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.causes.strength.outlying_rows import finding_of_outliers
from tb_gradflow.analyse.report.compare import compare as difference_of
from tb_gradflow.analyse.report.graph_edits import with_reason
from tb_gradflow.errors import LogError, SetupError
from tb_gradflow.gradcheck.check import check
from tb_gradflow.gradcheck.numpy_functions import NumpyFunction
from tb_gradflow.gradcheck.report import GradientsCheck
from tb_gradflow.plain import one_line, text_of_path
from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Trace
from tb_gradflow.serve.reports.comparison import Comparison
from tb_gradflow.serve.reports.divergence import Divergence, divergence_of
from tb_gradflow.serve.reports.page import name_in_page, page
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.runs.history import Caches, History
from tb_gradflow.serve.terminal.example_text import told_of_examples
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.memory import MemoryReader
from tb_gradflow.store.run import ChunkHead, StoredRun

if TYPE_CHECKING:
    from tb_gradflow.trace.explain.explanation import Explained
    from tb_gradflow.trace.explain.tried_edits import StepOutcome

Numbers = npt.NDArray[Any]


def open_log(path: str | os.PathLike[str]) -> Log:
    """Opens the log of one run: the directory that was given to the recorder.

    A log that is still being written opens too, and grows with the training. Raises LogError if there is no log, if it
    cannot be read, or if there are several runs below `path`.
    """
    root = os.fspath(path)
    runs = find_runs(root)
    if len(runs) > 1:
        listed = "\n".join(f"  {directory}" for directory in runs.values())
        raise LogError(f"{root} contains {len(runs)} runs: open one of them\n{listed}")
    [(name, directory)] = runs.items()
    return open_run(root if name == "." else name, directory)


def open_run(name: str, directory: str) -> Log:
    """The log whose event files are in `directory`; its reports are named `name`."""
    return Log(History(StoredRun(DirectoryReader(directory)), text_of_path(name), Caches()))


def compare(log_a: Log | Report | str | os.PathLike[str], log_b: Log | Report | str | os.PathLike[str]) -> Comparison:
    """What changed in `log_b`: variables with another status, and findings that are new or gone.

    Each argument is a log, the path of a log, or a report. The second log is read at its last recorded step, the first
    at the recorded step closest to it. Variables are matched by name; matches of renamed variables are guesses, and
    marked as such.
    """
    now = log_b if isinstance(log_b, Report) else _opened(log_b).report()
    before = log_a if isinstance(log_a, Report) else _nearest(_opened(log_a), now.step)
    return Comparison(before, now, difference_of(before.diagnosis, now.diagnosis))


def diverge(log_a: Log, log_b: Log) -> Divergence:
    """The first step, op and direction at which two runs differ beyond rounding, in the steps that both have recorded.

    Raises LogError if there is nothing to compare.
    """
    return divergence_of((log_a.name, log_b.name), (log_a.recorded, log_b.recorded))


def _opened(log: Log | str | os.PathLike[str]) -> Log:
    return log if isinstance(log, Log) else open_log(log)


def _nearest(log: Log, step: int) -> Report:
    return log.report(min(log.steps, key=lambda recorded: abs(recorded - step), default=None))


def page_of(logs: Sequence[Log], text: str, step: int | None = None) -> str:
    """One self-contained HTML page with these runs; `text` is the same as plain text."""
    histories: dict[str, History] = {}
    for log in logs:
        name = name_in_page(log.name)
        histories[name if name not in histories else f"{name} ({len(histories) + 1})"] = log.recorded
    return page(histories, text, step)


def explain(
    model_or_loss: Any,
    x: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    *,
    args: Sequence[Any] = (),
    variables: Sequence[Any] | None = None,
    feed_dict: Mapping[Any, Any] | None = None,
    try_fixes: bool = False,
    terms: bool = True,
    examples: bool = False,
) -> Report:
    """Runs one real training step, and reports the gradient of every variable and what is wrong.

    `explain(model, x, y)` takes a compiled Keras model and a batch; `explain(loss_fn, args=…, variables=…)` a function
    that returns a scalar loss. Weights, optimizer, metrics and random state are restored afterwards.

    `explain(loss_tensor, variables=…)` takes a tensor of a `tf.compat.v1` graph: measured in the default session, with
    `feed_dict` for its placeholders. Without a session the report is derived from the structure alone. The graph is not
    changed.

    With `try_fixes`, each edit of a finding is tried: it is applied to the functions in memory, without changing a
    file, and the step is run again and rolled back. `finding.tried` holds the result; edits that do not work are left
    out.

    An edit that works in one step is then trained for 20 steps on the same batch, on copies of the variables, and so is
    the step without it. An edit that does not train the variables of its finding is left out too, and of several the
    one with which the original step has learned most comes first. If the step has no optimizer, `variables` are trained
    by Adam, whose rate for each is 1 % of the root mean square of its elements, but at least 0.001. A step that only
    runs eagerly, or that calls Python with values that change as it trains, is not trained.

    If nothing above information is found, the step is trained for 50 steps on its batch instead, with its optimizer and
    with Adam at several rates: `report.diagnosis.verdict` says whether the model learns it, and if it does not, whether
    it is its inputs, or the size of its targets. Accuracies of the model are computed for predictions without an error.

    Edits of code that ran before the step, such as the code that builds the model, cannot be tried, and neither can
    edits in a `tf.compat.v1` graph.

    With `examples=True`, `report.examples` contains the gradient norm of each row of the batch, and its share of the
    batch's gradient, and the report names a row that contributes most of it. This computes the loss once for each row.
    It is available only if the gradients of the rows add up to the gradient of the batch: not with BatchNormalization,
    whose rows depend on each other, and not with dropout.

    If the loss is a sum, `report.terms` holds the gradient of each term for each variable. This takes one more backward
    pass for each term; `terms=False` avoids it.
    """
    from tb_gradflow.trace.experiments.batch_fit import batch_fit_of
    from tb_gradflow.trace.explain.graph_tensors import is_graph_tensor
    from tb_gradflow.trace.explain.one_step import explain_function, explain_model
    from tb_gradflow.trace.explain.trials import is_well
    from tb_gradflow.trace.explain.tried_edits import seen, variables_as_called, with_tried
    from tb_gradflow.trace.fidelity.rollback import drawing
    from tb_gradflow.trace.log.progress import told_if_long

    def run(*, terms: bool, examples: bool) -> Explained:
        if is_graph_tensor(model_or_loss):
            from tb_gradflow.trace.graph_v1.explain_graph import explain_graph

            return explain_graph(model_or_loss, variables, feed_dict, terms=terms)
        options = {"terms": terms, "examples": examples, "trains": try_fixes}
        # With and without an edit, the step is compared for the same random numbers.
        with drawing(0) if try_fixes else contextlib.nullcontext():
            if variables is not None:
                return explain_function(model_or_loss, args, variables, **options)
            return explain_model(model_or_loss, x, y, sample_weight, batch_size, **options)

    def again() -> StepOutcome:
        explained = run(terms=False, examples=False)
        return seen(explained, explained.diagnosis())

    if examples and is_graph_tensor(model_or_loss):
        raise SetupError("examples: the gradient of each row is not measured in a graph of `tf.compat.v1`")
    explained = run(terms=terms, examples=examples)
    diagnosis = explained.diagnosis()
    if is_graph_tensor(model_or_loss):
        diagnosis = replace(diagnosis, findings=with_reason(diagnosis.findings))
    elif try_fixes:
        called = variables_as_called(explained.trace, variables) if variables is not None else {}
        with told_if_long("trying the fixes on copies of the step"):
            if explained.training is not None and is_well(diagnosis):
                fits = tuple(filter(None, [batch_fit_of(explained.training, 0)]))
                explained = replace(explained, trace=replace(explained.trace, fits=fits, metrics=explained.metrics()))
                diagnosis = explained.diagnosis()
            else:
                diagnosis = with_tried(seen(explained, diagnosis), again, called)
    outliers = finding_of_outliers(explained.examples, len(explained.trace.targets) - 1)
    if outliers is not None:
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, outliers))
    reader = MemoryReader(explained.session, explained.trace, explained.record)
    name = explained.session.model or "this step"
    return Report(
        diagnosis,
        history=lambda: History(StoredRun(reader), name, Caches(), known=diagnosis),
        note=told_of_examples(explained.examples),
        examples=explained.examples,
    )


def check_gradients(
    fn: Callable[..., Any],
    args: Sequence[Any],
    gradient: Callable[..., Any] | None = None,
    *,
    step: float | None = None,
    learning_rate: float | None = None,
) -> GradientsCheck:
    """Compares the gradient of `fn(*args)`, a scalar, with finite differences, and reports what is wrong with it.

    For a function of tensors and variables, the tape's gradient is checked. For a NumPy function, your own gradient is
    checked: `gradient(*args)` returns it, one array for each argument or one for the first; or `fn` returns a pair of
    its value and its gradient. Several step sizes are tried on both sides, in proportion to the size of the argument
    and to the precision of the function. For large arguments, some elements and some directions are checked. Random
    numbers are the same in each call, and everything that the calls change is restored.

    `check.arguments["0"].verdict` is one of agrees, factor, order, kink, straight_through, disconnected, random, step
    or differs; `print(check)` explains it; `check.assert_correct()` is for tests.

    Args:
        fn: The function.
        args: The arguments of `fn` at which to check; integers in them are not varied.
        gradient: Your own gradient, instead of the tape's.
        step: The step of the finite differences that you train with. If there is no other gradient to check, these
            differences are checked.
        learning_rate: The learning rate of a gradient descent with that gradient; the report says if the descent
            diverges.

    Raises:
        SetupError: there is nothing to compare.
    """
    for name, value in (("step", step), ("learning_rate", learning_rate)):
        if value is not None and not value > 0:
            raise SetupError(f"{name} must be greater than 0, got {value!r}")
    if not callable(fn):
        raise SetupError(f"check_gradients takes a function and its arguments, got a {type(fn).__name__}")
    if "tensorflow" in sys.modules:
        from tb_gradflow.trace.explain.tensor_functions import TensorFunction, takes_tensors

        if takes_tensors(fn, args):
            tensors = TensorFunction(fn, args, gradient)
            with tensors.opened() as problem:
                return check(problem, step if gradient is not None else None, learning_rate, tensors.gradients)
    arrays = NumpyFunction(fn, args, gradient)
    problem = arrays.problem(without_gradient=step is not None)
    has_gradient = gradient is not None or arrays.returns_gradient
    return check(problem, step, learning_rate, arrays.gradients if has_gradient else None)


class Log:
    """The log of one run. Its methods raise LogError if it cannot be read."""

    def __init__(self, history: History) -> None:
        self._history = history
        history.refresh()

    def __repr__(self) -> str:
        steps = self._history.index().steps
        told = f"{len(steps)} recorded steps from {steps[0]} to {steps[-1]}" if steps else "no recorded step yet"
        return f"<Log of {one_line(self._history.name)}: {told}>"

    @property
    def last_recorded(self) -> float | None:
        """Seconds since the epoch when the last step was recorded; None if there is no step yet."""
        chunks = self._history.index().chunks
        return chunks[-1].wall_times[-1] if chunks else None

    @property
    def recorded(self) -> History:
        """The underlying run, for other parts of this package."""
        return self._history

    @property
    def name(self) -> str:
        """The name that its reports use."""
        return self._history.name

    @property
    def steps(self) -> tuple[int, ...]:
        """The optimizer steps recorded so far, increasing."""
        return self._history.refresh().steps

    def report(self, step: int | None = None) -> Report:
        """The report of `step`; by default, of the last recorded step."""
        diagnosis = self._history.diagnose(step)
        return Report(diagnosis, self._history.name, lambda: self._history, self._note())

    def history(self, variable: str) -> dict[str, Numbers]:
        """One variable over the recorded steps.

        Arrays of equal length: `step`, `wall_time`, the statistics of its gradient (`norm`, `max_abs`, `mean_abs`,
        `zero_fraction`, `nan_count`, `inf_count`; NaN if no gradient arrived), `weight_norm` and `update_norm`. If
        several losses depend on the variable, its gradient is that of the first.
        """
        index = self._history.refresh()
        names = {head.trace: trace for head, trace in self._history.with_traces(index.session.id, index.chunks)}
        if not index.chunks:
            names = {trace: self._history.trace(index.session.id, trace) for trace in index.traces}
        if not any(variable == each.name for trace in names.values() for each in trace.variables):
            raise LogError(_unknown_variable(variable, names))
        parts = [self._part(index.session.id, head, names.get(head.trace), variable) for head in index.chunks]
        gradients = _joined([gradient for gradient, _ in parts], len(GRADIENT_STATISTICS))
        weights = _joined([weight for _, weight in parts], len(VARIABLE_STATISTICS))
        return {
            "step": np.array(index.steps, dtype=np.int64),
            "wall_time": np.array([time for head in index.chunks for time in head.wall_times], dtype=np.float64),
            **{statistic: gradients[:, column] for column, statistic in enumerate(GRADIENT_STATISTICS)},
            **{statistic: weights[:, column] for column, statistic in enumerate(VARIABLE_STATISTICS)},
        }

    def _note(self) -> str:
        earlier = self._history.index().earlier
        others = "an earlier recording" if earlier == 1 else f"{earlier} earlier recordings"
        of_others = f"The directory also contains {others}, not shown: give each training its own directory."
        return " ".join(filter(None, (self._history.damage, of_others if earlier else "")))

    def _part(self, session: str, head: ChunkHead, trace: Trace | None, variable: str) -> tuple[Numbers, Numbers]:
        gradients = np.full((len(head.steps), len(GRADIENT_STATISTICS)), np.nan, np.float32)
        weights = np.full((len(head.steps), len(VARIABLE_STATISTICS)), np.nan, np.float32)
        if trace is None:  # it cannot be read
            return gradients, weights
        number = next((i for i, each in enumerate(trace.variables) if each.name == variable), None)
        rows = [each.row for each in trace.variable_gradients if each.variable == number and each.row is not None]
        if rows:
            gradients[:] = self._history.measured(session, head)[:, rows[0]]
        if number is not None:
            weights[:] = self._history.moved(session, head)[:, number]
        return gradients, weights


def _joined(parts: list[Numbers], columns: int) -> Numbers:
    return np.concatenate(parts) if parts else np.empty((0, columns), np.float32)


def _unknown_variable(variable: str, traces: Mapping[int, Trace]) -> str:
    names = list(dict.fromkeys(each.name for trace in traces.values() for each in trace.variables))
    shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return f"the log has no variable {variable!r}: it has {shown or 'none'}"
