"""The values of two recorded steps, and by how much each differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.divergence.pairing import Pairing, paired
from tb_gradflow.analyse.divergence.recorded import RecordedStep
from tb_gradflow.analyse.divergence.rounding import RECORDED, UNIT_ROUNDOFF
from tb_gradflow.analyse.divergence.structure import descendants
from tb_gradflow.analyse.graph.op_sets import SAME_VALUES
from tb_gradflow.record.schema import (
    GRADIENT_STATISTICS,
    MOVEMENT_STATISTICS,
    PASSED_STATISTICS,
    RANGE_STATISTICS,
    VARIABLE_STATISTICS,
    Trace,
)

Numbers = npt.NDArray[np.float64]
Key = tuple[int, ...]

Kind = Literal["batch", "weights", "value", "loss", "gradient", "rate", "update"]
"""What is compared, in the order in which a step computes it: the batch; the variables before the step; values of the
forward pass; losses; gradients; learning rates; the updates of variables, and the variables after the step."""

_NAMES = ("norm", "max_abs", "mean_abs")
_SIZES = [GRADIENT_STATISTICS.index(name) for name in _NAMES]
_COUNTS = [GRADIENT_STATISTICS.index(name) for name in ("nan_count", "inf_count")]
_ENDS = {name: RANGE_STATISTICS.index(name) for name in ("smallest", "largest")}
_SUMS = {name: PASSED_STATISTICS.index(name) for name in ("norm", "sum")}
_RATE = MOVEMENT_STATISTICS.index("rate")
_WEIGHT, _UPDATE, _AFTER = (
    VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm", "nonfinite_after")
)

_KNOWN = frozenset({"value", "none"})
"""Outcomes that say something of the program, and not of what was requested of it."""


_FAR = 50
"""Ops that are searched for the gradient that arrives at a variable."""

_SMALLEST_LOSS = 1e-2
"""A loss that is the difference of larger numbers rounds as they do."""

_SMALL = 1e-3
"""Smaller gradients, relative to the largest of the step, are compared relative to this: they may be differences of
larger numbers."""

_NOISE = 1e-5
"""A variable's gradient that is this much smaller than the one that arrives where it is used is what rounding leaves of
zero, such as that of a bias in front of a normalisation. An optimizer like Adam makes full steps of it."""

_DRIFT = 1e-4
"""A batch that is computed from weights drifts with them. Other data differ by more."""

_LOOSE = 4.0
"""An update divides by roots of gradients, and multiplies by rates."""


@dataclass(frozen=True, slots=True)
class Value:
    """What both steps have measured.

    Attributes:
        kind: What it is.
        place: Index in the first trace of what it belongs to: the op, or the variable of an update, the input.
        there: The same in the second trace.
        name: What it is called.
        input: Which input of that op it is; -1 for an output, and for all other values.
        variable: Index of the variable in the first trace, if it is one of a variable; -1 otherwise.
    """

    kind: Kind
    place: int
    there: int
    name: str
    input: int = -1
    variable: int = -1


@dataclass(frozen=True, slots=True)
class Differing:
    """A value, and how much it differs.

    Attributes:
        value: The value.
        a: It in the first run; of a tensor, the statistic that differs most.
        b: It in the second run.
        statistic: The name of that statistic; empty for a number.
        relative: The difference, relative to the larger one; infinite if only one is finite, or only one exists.
        allowed: The difference that rounding may explain.
    """

    value: Value
    a: float
    b: float
    statistic: str
    relative: float
    allowed: float

    @property
    def is_beyond(self) -> bool:
        """Whether rounding does not explain it."""
        return self.relative > self.allowed


class Comparable:
    """What can be compared of the steps of two traces. Constant for many steps, so it is prepared once."""

    def __init__(self, a: Trace, b: Trace) -> None:
        self.pair = paired(a, b)
        pair = self.pair
        self._inputs = [(x, y) for x, y in pair.inputs.items()]
        self._values = [*_common_values(pair, _ranges, _ENDS), *_common_values(pair, _passed, _SUMS)]
        self._gradients = list(_gradients(pair))
        self._moved = list(_common(_rates(a), _rates(b), lambda key: (pair.variables.get(key[0], -1),)))
        self._variables = [(x, y) for x, y in pair.variables.items() if a.variables[x].shape == b.variables[y].shape]
        self._arriving = _arriving(a)
        self._noisy: set[int] = set()
        self._moved_by_noise: set[int] | None = None

    def differing(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        """All values of two steps, in the order in which a step computes them. `allowed` is for computed values."""
        yield from self._batch(a, b, allowed)
        yield from self._before(a, b, allowed)
        yield from self._values_of(a, b, allowed)
        yield from self._losses(a, b, allowed)
        yield from self._gradients_of(a, b, allowed)
        yield from self._updates(a, b, allowed)

    def _batch(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        rows = [(a.trace.inputs[x].row, b.trace.inputs[y].row) for x, y in self._inputs]
        for (x, y), (p, q, statistic, relative) in zip(self._inputs, _of_rows(a, b, rows), strict=True):
            value = Value("batch", x, y, a.trace.inputs[x].name)
            yield Differing(value, p, q, statistic, relative, max(RECORDED, min(allowed, _DRIFT)))

    def _before(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        for x, y in self._variables:
            if x in self._noisy:
                continue
            (norm, total), (norm_b, total_b) = a.before[x], b.before[y]
            of_norms = _relative(float(norm), float(norm_b))
            of_sums = _relative(float(total), float(total_b), float(max(norm, norm_b)))
            value = Value("weights", x, y, a.trace.variables[x].name, variable=x)
            shown = (norm, norm_b, "norm", of_norms) if of_norms >= of_sums else (total, total_b, "sum", of_sums)
            yield Differing(value, float(shown[0]), float(shown[1]), *shown[2:], max(RECORDED, allowed))

    def is_of_noise(self, differing: Differing) -> bool:
        """Whether a value depends on a variable that moves by noise, which need not change the loss."""
        if differing.value.kind != "value" or not self._noisy:
            return False
        ops = self.pair.a.ops
        if self._moved_by_noise is None:
            starts = [number for number, op in enumerate(ops) if op.reads in self._noisy]
            self._moved_by_noise = descendants(ops, starts)
        place, number = differing.value.place, differing.value.input
        ends = [place] if number < 0 else [edge.op for edge in ops[place].inputs if edge.input == number]
        return any(end in self._moved_by_noise for end in ends)

    def _values_of(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        for (op, place), other, row, row_b, names in self._values:
            columns = [*names.values()]
            p, q = a.gradients[row, columns].astype(float), b.gradients[row_b, columns].astype(float)
            if np.isnan(p).any() or np.isnan(q).any():
                continue
            largest = max(np.abs(p).max(), np.abs(q).max())
            relative = float(np.abs(p - q).max() / largest) if largest > 0 else 0.0
            at = int(np.abs(p - q).argmax())
            name = a.trace.ops[op].name
            value = Value("value", op, other[0], name, place)
            yield Differing(value, float(p[at]), float(q[at]), [*names][at], relative, allowed)

    def _losses(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        for x, y in self.pair.targets.items():
            if x < len(a.losses) and y < len(b.losses) and a.trace.targets[x].measured and b.trace.targets[y].measured:
                target, other = a.trace.targets[x], b.trace.targets[y]
                value = Value("loss", target.op, other.op, target.name)
                relative = _relative(a.losses[x], b.losses[y], _SMALLEST_LOSS)
                if np.isnan(a.losses[x]) != np.isnan(b.losses[y]):
                    relative = float("inf")
                yield Differing(value, a.losses[x], b.losses[y], "", relative, allowed)

    def _gradients_of(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        known = [(value, row, row_b) for value, row, row_b in self._gradients if row >= 0 and row_b >= 0]
        rows = [(row, row_b) for _, row, row_b in known]
        scales = np.zeros((len(rows), len(_SIZES)))
        if rows:
            sizes = np.fmax(a.gradients[[x for x, _ in rows]][:, _SIZES], b.gradients[[y for _, y in rows]][:, _SIZES])
            scales += np.nan_to_num(_SMALL * np.nanmax(np.where(np.isfinite(sizes), sizes, 0.0), axis=0))
        for at, (value, row, _) in enumerate(known):
            arriving = self._arriving.get(value.place, ())
            here = float(np.nanmax([0.0, *a.gradients[list(arriving), 0]]))
            if here > 0:
                scales[at] = np.maximum(scales[at], here)
                if value.variable >= 0 and a.gradients[row, 0] < _NOISE * here:
                    self._noisy.add(value.variable)
                    self._moved_by_noise = None
        found = [
            Differing(value, *numbers, _LOOSE * allowed)
            for (value, _, _), numbers in zip(known, _of_rows(a, b, rows, scales), strict=True)
            if value.variable not in self._noisy
        ]
        for value, row, row_b in self._gradients:
            if row < 0 or row_b < 0:
                one = [float("nan") if r < 0 else float(step.gradients[r, 0]) for step, r in ((a, row), (b, row_b))]
                found.append(Differing(value, one[0], one[1], "norm", float("inf"), allowed))
        yield from sorted(found, key=lambda each: (-each.value.place, each.value.variable))

    def _updates(self, a: RecordedStep, b: RecordedStep, allowed: float) -> Iterator[Differing]:
        for (variable,), (other,), row, row_b in self._moved:
            rates = float(a.gradients[row, _RATE]), float(b.gradients[row_b, _RATE])
            name = a.trace.variables[variable].name
            relative = _relative(*rates)
            yield Differing(Value("rate", variable, other, name, variable=variable), *rates, "", relative, RECORDED)
        for x, y in self._variables:
            if x in self._noisy:
                continue
            weights, weights_b = float(a.variables[x, _WEIGHT]), float(b.variables[y, _WEIGHT])
            moved, moved_b = float(a.variables[x, _UPDATE]), float(b.variables[y, _UPDATE])
            value = Value("update", x, y, a.trace.variables[x].name, variable=x)
            # A change is the difference of two weights, and rounds as they do.
            unit = UNIT_ROUNDOFF.get(a.trace.variables[x].dtype, UNIT_ROUNDOFF["float32"])
            largest = np.nanmax([0.0, moved, moved_b])
            rounded = 2 * unit * np.nanmax([0.0, weights, weights_b]) / largest if largest > 0 else 0.0
            relative = _relative(moved, moved_b)
            yield Differing(value, moved, moved_b, "norm", relative, float(_LOOSE * allowed + rounded))
            broken, broken_b = a.variables[x, _AFTER], b.variables[y, _AFTER]
            is_lost = (broken > 0) != (broken_b > 0) and not np.isnan([broken, broken_b]).any()
            relative = float("inf") if is_lost else _relative(weights, weights_b)
            yield Differing(value, weights, weights_b, "weight", relative, _LOOSE * allowed)


def _relative(a: float, b: float, smallest: float = 0.0) -> float:
    """The difference, relative to the larger one; 0 if one is not known."""
    if np.isnan(a) or np.isnan(b) or a == b:
        return 0.0
    if np.isinf(a) or np.isinf(b):
        return float("inf")
    return float(abs(a - b) / max(abs(a), abs(b), smallest))


def _of_rows(
    a: RecordedStep, b: RecordedStep, rows: Sequence[tuple[int, int]], scales: Numbers | float = 0.0
) -> list[tuple[float, float, str, float]]:
    """For each pair of rows with statistics of a tensor: the statistic that differs most in both, its name, and by how
    much, relative to the larger one or to these sizes. Rows of which one was not measured do not differ."""
    if not rows:
        return []
    ours, theirs = (
        step.gradients[[pair[which] for pair in rows]].astype(np.float64) for which, step in ((0, a), (1, b))
    )
    p, q = ours[:, _SIZES], theirs[:, _SIZES]
    with np.errstate(all="ignore"):
        sizes = np.maximum(np.maximum(p, q), scales)
        relative = np.where(sizes > 0, np.abs(p - q) / sizes, 0.0)
    relative = np.nan_to_num(relative, nan=0.0, posinf=np.inf)
    is_lost = ((ours[:, _COUNTS] > 0) != (theirs[:, _COUNTS] > 0)).any(axis=1)
    relative[is_lost] = np.inf
    relative[np.isnan(p[:, 0]) | np.isnan(q[:, 0])] = 0.0
    most = relative.argmax(axis=1)
    return [
        (float(p[at, column]), float(q[at, column]), _NAMES[column], float(relative[at, column]))
        for at, column in enumerate(most)
    ]


def _ranges(trace: Trace) -> dict[Key, int]:
    return {(each.op, each.input): each.row for each in trace.ranges}


def _passed(trace: Trace) -> dict[Key, int]:
    return {(each.op, each.input): each.row for each in trace.passed}


def _common_values(
    pair: Pairing, rows: Callable[[Trace], dict[Key, int]], columns: dict[str, int]
) -> Iterator[tuple[Key, Key, int, int, dict[str, int]]]:
    def partner(key: Key) -> Key:
        return pair.ops.get(key[0], -1), key[1]

    return ((*each, columns) for each in _common(rows(pair.a), rows(pair.b), partner))


def _rates(trace: Trace) -> dict[Key, int]:
    return {(each.variable,): each.row for each in trace.movements}


def _common(a: dict[Key, int], b: dict[Key, int], partner: Callable[[Key], Key]) -> Iterator[tuple[Key, Key, int, int]]:
    """What both have: its key in the first and in the second, and its rows."""
    for key, row in a.items():
        other = partner(key)
        if other in b:
            yield key, other, row, b[other]


def _gradients(pair: Pairing) -> Iterator[tuple[Value, int, int]]:
    """The gradients that both traces know of, with their rows; -1 where there is none. From the loss backwards."""
    found = [*_of_tensors(pair), *_of_variables(pair)]
    return iter(sorted(found, key=lambda each: (-each[0].place, each[0].variable)))


def _of_tensors(pair: Pairing) -> Iterator[tuple[Value, int, int]]:
    theirs = {(each.target, each.op, each.output): each for each in pair.b.tensor_gradients}
    for ours in pair.a.tensor_gradients:
        key = pair.targets.get(ours.target, -1), pair.ops.get(ours.op, -1), ours.output
        other = theirs.get(key)
        if other is not None and ours.op >= 0 and {ours.outcome, other.outcome} <= _KNOWN:
            value = Value("gradient", ours.op, other.op, pair.a.ops[ours.op].name)
            yield from _with_rows(value, ours.row, other.row)


def _of_variables(pair: Pairing) -> Iterator[tuple[Value, int, int]]:
    theirs = {(each.target, each.variable): each for each in pair.b.variable_gradients}
    readers = [_reader(trace) for trace in (pair.a, pair.b)]
    for ours in pair.a.variable_gradients:
        key = pair.targets.get(ours.target, -1), pair.variables.get(ours.variable, -1)
        other = theirs.get(key)
        if other is not None and {ours.outcome, other.outcome} <= _KNOWN:
            places = readers[0].get(ours.variable, -1), readers[1].get(other.variable, -1)
            value = Value("gradient", *places, pair.a.variables[ours.variable].name, variable=ours.variable)
            yield from _with_rows(value, ours.row, other.row)


def _with_rows(value: Value, a: int | None, b: int | None) -> Iterator[tuple[Value, int, int]]:
    if a is not None or b is not None:
        yield value, -1 if a is None else a, -1 if b is None else b


def _reader(trace: Trace) -> dict[int, int]:
    """The first op that reads each variable."""
    found: dict[int, int] = {}
    for number, op in enumerate(trace.ops):
        if op.reads is not None:
            found.setdefault(op.reads, number)
    return found


def _arriving(trace: Trace) -> dict[int, list[int]]:
    """For each op that reads a variable or copies one, the rows of the gradients that arrive at the first ops after it
    whose gradient is measured."""
    measured: dict[int, list[int]] = {}
    for each in trace.tensor_gradients:
        if each.row is not None:
            measured.setdefault(each.op, []).append(each.row)
    takers: dict[int, list[int]] = {}
    for number, op in enumerate(trace.ops):
        for edge in op.inputs:
            if edge.op >= 0 and not edge.carried:
                takers.setdefault(edge.op, []).append(number)
    found: dict[int, list[int]] = {}
    for start, op in enumerate(trace.ops):
        if op.reads is None:
            continue
        queue, seen, copies, rows = list(takers.get(start, ())), {start}, [start], list[int]()
        for number in queue:  # grows during the loop
            if number in seen or len(seen) > _FAR:
                continue
            seen.add(number)
            if trace.ops[number].type in SAME_VALUES:
                copies += [number] if trace.ops[number].inputs[0].op in copies else []
            elif number in measured:
                rows += measured[number]
                continue
            queue.extend(takers.get(number, ()))
        found |= dict.fromkeys(copies, rows)
    return found
