"""What differs in the settings of two steps, as far as logs hold them: versions, optimizers, types, code."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tb_gradflow.analyse.divergence.pairing import Pairing
from tb_gradflow.analyse.divergence.recorded import RecordedStep
from tb_gradflow.record.schema import MOVEMENT_STATISTICS, Optimizer, Passage, Trace

_RATE = MOVEMENT_STATISTICS.index("rate")

_MOST_LINES = 8
"""Lines of code that differ and are shown."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that two runs do not share.

    Attributes:
        what: What it is.
        a: Its value in the first run; empty if there is none.
        b: Its value in the second run; empty if there is none.
    """

    what: str
    a: str
    b: str


def settings_of_runs(a: RecordedStep, b: RecordedStep, pair: Pairing) -> tuple[Setting, ...]:
    """Those of the whole run: versions, seed, types, the structure of the model."""
    return tuple(_differing([*_of_sessions(a, b), *_of_traces(pair)]))


def settings_of_updates(a: RecordedStep, b: RecordedStep, pair: Pairing) -> tuple[Setting, ...]:
    """Those of optimizers."""
    ours, theirs = a.trace.optimizers, b.trace.optimizers
    found: list[Setting] = []
    for number in range(max(len(ours), len(theirs))):
        one = _described(ours[number]) if number < len(ours) else {}
        other = _described(theirs[number]) if number < len(theirs) else {}
        which = "optimizer" if max(len(ours), len(theirs)) == 1 else f"optimizer {number + 1}"
        names = dict.fromkeys((*one, *other))
        found += [
            Setting(f"{which}: {name}" if name else which, one.get(name, ""), other.get(name, "")) for name in names
        ]
    found.append(Setting("learning rate", _rates(a), _rates(b)))
    moved = {pair.variables.get(each.variable): each for each in a.trace.movements}
    for each in b.trace.movements:
        before = moved.get(each.variable)
        if before is not None:
            name = b.trace.variables[each.variable].name
            found.append(Setting(f"weight decay of {name}", f"{before.decay:g}", f"{each.decay:g}"))
            found.append(Setting(f"constraint of {name}", before.constraint, each.constraint))
    return tuple(_differing(found))


def changed_code(a: Trace, b: Trace) -> tuple[str, ...]:
    """The lines of the user's code that only one trace has, as in a diff; empty if there are none, or too many."""
    diff = difflib.unified_diff(_code(a.passages), _code(b.passages), n=0, lineterm="")
    lines = [line for line in diff if _is_code(line)]
    return tuple(lines) if len(lines) <= _MOST_LINES else ()


def _is_code(line: str) -> bool:
    return line[:1] in ("+", "-") and line[:3] not in ("+++", "---") and bool(line[1:].strip())


def _code(passages: Sequence[Passage]) -> list[str]:
    return [line for passage in passages for line in passage.text.splitlines()]


def _of_sessions(a: RecordedStep, b: RecordedStep) -> Iterator[Setting]:
    for what, name in (("TensorFlow", "tensorflow"), ("Keras", "keras"), ("tb_gradflow", "tool"), ("model", "model")):
        yield Setting(what, getattr(a.session, name), getattr(b.session, name))
    yield Setting("global seed", *("" if each.session.seed is None else str(each.session.seed) for each in (a, b)))


def _of_traces(pair: Pairing) -> Iterator[Setting]:
    a, b = pair.a, pair.b
    only_a, only_b = pair.variables_of_one()
    yield Setting("variables in one run only", ", ".join(only_a), ", ".join(only_b))
    for x, y in pair.variables.items():
        ours, theirs = a.variables[x], b.variables[y]
        for what in ("dtype", "shape", "trainable"):
            yield Setting(f"{what} of {ours.name}", str(getattr(ours, what)), str(getattr(theirs, what)))
    yield Setting("loss", *(", ".join(target.name for target in trace.targets) for trace in (a, b)))
    yield Setting("batch", *(", ".join(each.name for each in trace.inputs) for trace in (a, b)))
    yield Setting("types of values", *(", ".join(_types(trace)) for trace in (a, b)))


def _types(trace: Trace) -> list[str]:
    types = {output.dtype for op in trace.ops for output in op.outputs}
    return sorted(each for each in types if "float" in each)


def _described(optimizer: Optimizer) -> dict[str, str]:
    known = dict(option.partition("=")[::2] for option in optimizer.options)
    return {
        "": optimizer.type,
        **known,
        "clips": optimizer.clips,
        "accumulates": str(optimizer.accumulates),
        "loss scale": "yes" if optimizer.scaled else "no",
        "schedule": "yes" if optimizer.scheduled else "no",
    }


def _rates(step: RecordedStep) -> str:
    rates = {float(step.gradients[each.row, _RATE]) for each in step.trace.movements}
    return ", ".join(f"{rate:.6g}" for rate in sorted(rates) if not np.isnan(rate))


def _differing(settings: Sequence[Setting]) -> Iterator[Setting]:
    return (each for each in settings if each.a != each.b)
