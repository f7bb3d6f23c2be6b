"""The first difference between two runs, as users see it: an object, plain JSON, and text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tb_gradflow.analyse.divergence.compared import Differing
from tb_gradflow.analyse.divergence.first import Agreement, first_divergence
from tb_gradflow.analyse.divergence.first import Divergence as Found
from tb_gradflow.errors import LogError
from tb_gradflow.plain import clean, one_line
from tb_gradflow.record.schema import Op, Trace
from tb_gradflow.serve.reports.recorded_steps import common_steps
from tb_gradflow.serve.reports.shown import Shown
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.runs.history import History
from tb_gradflow.serve.terminal.text import Look, Role, count, table

FORMAT = 1
SHOWN = 20

_KINDS = {
    "batch": ("tensor of the batch", "tensors of the batch"),
    "weights": ("variable", "variables"),
    "value": ("value", "values"),
    "loss": ("loss", "losses"),
    "gradient": ("gradient", "gradients"),
    "rate": ("learning rate", "learning rates"),
    "update": ("update", "updates"),
}


_STATISTICS = {
    "max_abs": "largest magnitude",
    "mean_abs": "mean magnitude",
    "smallest": "smallest element",
    "largest": "largest element",
}
_KNOWN = {"the batch": "knows_batch", "the variables before the step": "knows_weights"}


class Divergence(Shown):
    """The first step, op and direction at which two runs differ beyond rounding.

    Attributes:
        runs: The names of the two runs.
        differs: Whether they do.
        step: The step; -1 if they do not.
        direction: `forward`, `backward` or `update`; empty if they do not differ.
        summary: The result in one sentence.
    """

    def __init__(
        self, runs: tuple[str, str], steps: tuple[Sequence[int], Sequence[int]], found: Found | Agreement
    ) -> None:
        """`steps` are those that each run has recorded."""
        self.runs = runs
        self._steps = steps
        self._found = found
        self.differs = isinstance(found, Found)
        self.step = found.step if isinstance(found, Found) else -1
        self.direction: str = found.direction if isinstance(found, Found) else ""
        self.summary = _summary(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        found = self._found
        runs = [
            {"run": run, "recorded": len(steps), "first": steps[0], "last": steps[-1]}
            for run, steps in zip(self.runs, self._steps, strict=True)
        ]
        if isinstance(found, Found):
            more = _found_dict(found)
        else:
            agreed = " ".join(_agreement_sentences(found, self._steps))
            more = {"largest": _value_dict(found.largest, found.step), "agreed": agreed}
        return {
            "format": FORMAT,
            "a": runs[0],
            "b": runs[1],
            "compared": list(found.steps),
            "differs": self.differs,
            "summary": self.summary,
            **more,
        }

    def __repr__(self) -> str:
        return one_line(f"<Divergence of {self.runs[0]} and {self.runs[1]}: {self.summary}>")

    def _lines(self, look: Look) -> Iterator[str]:
        for label, run, steps in zip("AB", self.runs, self._steps, strict=True):
            told = f"{count(len(steps), 'recorded step')} from {steps[0]} to {steps[-1]}"
            yield f"{look.paint(label, 'dim')}  {look.paint(one_line(run), 'strong')}, {told}"
        role: Role = "error" if self.differs else "good"
        yield from (look.paint(line, role) for line in look.wrapped(self.summary))
        if isinstance(self._found, Found):
            yield from _found_lines(self._found, look)
        else:
            for sentence in _agreement_sentences(self._found, self._steps):
                yield from look.prose(sentence, "  ")


def divergence_of(names: tuple[str, str], histories: tuple[History, History]) -> Divergence:
    """The first step, op and direction at which two runs differ beyond rounding, in the steps that both have recorded.

    Raises LogError if there is nothing to compare.
    """
    found = first_divergence(common_steps(*histories))
    steps = histories[0].index().steps, histories[1].index().steps
    for name, recorded in zip(names, steps, strict=True):
        if not recorded:
            raise LogError(f"{name}: no step has been recorded")
    if isinstance(found, Agreement) and found.largest is None:
        what = "a variable, loss or tensor" if found.steps else "a recorded step"
        raise LogError(f"{names[0]} and {names[1]} have nothing to compare: they do not have {what} in common")
    return Divergence(names, steps, found)


def _summary(found: Found | Agreement) -> str:
    if isinstance(found, Found):
        return f"The runs differ beyond rounding in step {found.step}, {_direction(found)}: {_what(found)}."
    if not found.steps:
        return "Nothing can be compared: the runs have no recorded step in common."
    if found.largest is None:
        return "Nothing can be compared: the runs have no variable, loss or tensor in common."
    steps = count(len(found.steps), "step")
    return f"No difference beyond rounding in the {steps} that both runs have recorded."


def _direction(found: Found) -> str:
    words = {"forward": "in the forward pass", "backward": "in the backward pass", "update": "in the update"}
    return words[found.direction]


def _what(found: Found) -> str:
    """What differs first, and where."""
    located, value = found.located, found.differing.value
    if located.basis == "batch":
        return f"`{value.name}` of the batch"
    if located.basis == "weights":
        return f"the value of `{value.name}` before the step"
    if located.basis == "optimizer":
        which = "the learning rate" if value.kind == "rate" else "the update"
        return f"{which} of `{value.name}`"
    if located.basis == "assigned":
        return f"`{value.name}`, which no optimizer updates"
    name = _op_name(found)
    if located.basis == "changed":
        return f"`{name}` {_change(found)}"
    if located.basis == "unknown_input":
        return f"`{name}`, which takes a value that the log does not hold, such as random numbers"
    if located.basis == "other_input":
        return f"`{name}`, which takes another value, computed from the batch or from constants alone"
    if located.basis == "between" and located.others:
        return f"`{name}`, or one of the {count(located.others, 'op')} in front of it"
    return f"`{name}`" if name else f"{_KINDS[value.kind][0]} `{value.name}`"


def _change(found: Found) -> str:
    change = found.located.change
    assert change is not None
    if change.a is None:
        return "exists only in B"
    return change.text and f"differs ({change.text})" if change.b is not None else "exists only in A"


def _op_name(found: Found) -> str:
    op = _op(found)
    return "" if op is None else op.name


def _op(found: Found) -> Op | None:
    located = found.located
    if located.b is not None:
        return found.pair.b.ops[located.b]
    return None if located.a is None else found.pair.a.ops[located.a]


def _found_lines(found: Found, look: Look) -> Iterator[str]:
    for label, trace, number in (("A", found.pair.a, found.located.a), ("B", found.pair.b, found.located.b)):
        line = _source_line(trace, number)
        if line:
            yield from look.wrapped(line, "     ", first=f"  {label}  ")
    yield from look.prose(_measured(found), "  ")
    yield from look.prose(_agreed(found), "  ")
    if found.settings:
        yield ""
        yield "What else differs:" if found.located.basis != "optimizer" else "What differs:"
        room = max(look.width - 50, 16)
        rows = [
            (look.short(each.what, 40), _side(each.a, room), _side(each.b, room)) for each in found.settings[:SHOWN]
        ]
        for what, a, b in table([(f"  {what}", a, b) for what, a, b in rows]):
            yield f"{what}{a.rstrip()} → {b}"
        if len(found.settings) > SHOWN:
            yield look.paint(f"  … and {len(found.settings) - SHOWN} more", "dim")
    yield ""
    yield from _op_lines(found, look)
    if found.code:
        yield ""
        yield "Lines of code that differ:"
        for line in found.code:
            yield f"  {look.short(line, look.width - 2)}"


def _side(text: str, room: int) -> str:
    text = one_line(text) or "none"
    return text if len(text) <= room else text[: room - 1] + "…"


def _source_line(trace: Trace, number: int | None) -> str:
    place = None if number is None else trace.ops[number].source
    if place is None:
        return ""
    source = trace.sources[place]
    return f"{source.file}:{source.line}: {source.code.splitlines()[0] if source.code else ''}".rstrip(": ")


def _measured(found: Found) -> str:
    differing = found.differing
    kind, name = differing.value.kind, differing.value.name
    statistic = _STATISTICS.get(differing.statistic, differing.statistic)
    what = {
        "batch": f"The {statistic} of `{name}`",
        "weights": f"The {statistic} of `{name}`",
        "value": f"The {statistic} of what `{name}` takes",
        "loss": f"The loss `{name}`",
        "gradient": f"The {statistic} of the gradient at `{name}`",
        "rate": f"The learning rate of `{name}`",
        "update": f"The norm of `{name}` after the step"
        if differing.statistic == "weight"
        else f"The norm of the update of `{name}`",
    }[kind]
    one, many = _KINDS[kind]
    number, of = found.count
    counted = f" {number} of {count(of, one, many)} {'differs' if number == 1 else 'differ'}." if of > 1 else ""
    return f"{what} is {_number(differing.a)} in A and {_number(differing.b)} in B{_by(differing)}.{counted}"


def _number(value: float) -> str:
    return "not there" if value != value else f"{value:.6g}"


def _by(differing: Differing) -> str:
    if differing.relative == float("inf"):
        return ""
    return f": a relative difference of {differing.relative:.2g}, where rounding explains {differing.allowed:.2g}"


def _agreed(found: Found) -> str:
    """What was compared before it, and agrees; and what is not known."""
    parts = []
    before = found.before
    if before is not None and found.step - before > 1:
        parts.append(
            f"No step between {before} and {found.step} is recorded in both runs: it may have begun in one of them."
        )
    elif before is not None:
        parts.append(f"Up to step {before}, everything agrees.")
    basis = found.located.basis
    if basis == "weights" and before is not None and found.step - before == 1:
        parts.append("Something other than the step has changed it since then.")
    if basis in ("changed", "unknown_input", "other_input", "between") and found.direction == "forward":
        known = [word for word, is_known in _KNOWN.items() if getattr(found, is_known)]
        unknown = [word for word in _KNOWN if word not in known]
        if known:
            parts.append(f"There is no difference in {' and '.join(known)}.")
        if unknown:
            parts.append(f"At least one log does not hold {' and '.join(unknown)}: the difference may begin there.")
    if found.direction == "backward":
        parts.append("The forward pass agrees.")
    if found.direction == "update":
        parts.append("The gradients agree.")
        if not found.settings:
            parts.append("The logs hold no setting that differs: the optimizer's state may.")
    return " ".join(parts)


def _op_lines(found: Found, look: Look) -> Iterator[str]:
    pair, both = found.pair, len(found.pair.ops)
    changed = [each for each in found.ops if each.a is not None and each.b is not None]
    alone = len(pair.a.ops) - both, len(pair.b.ops) - both
    if not found.ops:
        yield f"Ops: {both} in both runs; none differs"
        return
    yield f"Ops: {both} in both runs, {len(changed)} of them differ; {alone[0]} only in A, {alone[1]} only in B"
    for each in found.ops[:SHOWN]:
        op = pair.a.ops[each.a] if each.a is not None else pair.b.ops[each.b or 0]
        kind = "only in B" if each.a is None else "only in A" if each.b is None else "differs"
        text = clean(each.text)
        yield f"  {kind:<10}{look.short(op.name, look.width - 14 - len(text))}  {text}".rstrip()
    if len(found.ops) > SHOWN:
        yield look.paint(f"  … and {len(found.ops) - SHOWN} more", "dim")


def _agreement_sentences(found: Agreement, steps: tuple[Sequence[int], Sequence[int]]) -> Iterator[str]:
    if found.largest is not None and not found.largest.relative:
        yield "All values are equal."
    elif found.largest is not None:
        value = found.largest
        yield (
            f"The largest relative difference is {value.relative:.2g}, of the {_KINDS[value.value.kind][0]} "
            f"`{value.value.name}` in step {found.step}, where rounding explains {value.allowed:.2g}."
        )
    left_out = [len(set(each) - set(found.steps)) for each in steps]
    if any(left_out) and found.steps:
        yield (
            f"{count(left_out[0], 'step')} of A and {left_out[1]} of B are recorded in one run only, and were not "
            "compared."
        )


def _found_dict(found: Found) -> dict[str, Any]:
    located = found.located
    return {
        "step": found.step,
        "previous": found.before,
        "direction": found.direction,
        "basis": located.basis,
        "op": {
            "a": _op_dict(found.pair.a, located.a),
            "b": _op_dict(found.pair.b, located.b),
            "change": None if located.change is None else _change(found),
            "others": located.others,
        },
        "value": _value_dict(found.differing, found.step),
        "measured": _measured(found),
        "agreed": _agreed(found),
        "settings": [{"what": each.what, "a": each.a, "b": each.b} for each in found.settings],
        "ops": [
            {
                "a": None if each.a is None else found.pair.a.ops[each.a].name,
                "b": None if each.b is None else found.pair.b.ops[each.b].name,
                "difference": each.text,
            }
            for each in found.ops
        ],
        "code": list(found.code),
    }


def _op_dict(trace: Trace, number: int | None) -> dict[str, Any] | None:
    if number is None:
        return None
    op = trace.ops[number]
    source = None if op.source is None else trace.sources[op.source]
    return {
        "name": op.name,
        "type": op.type,
        "source": None if source is None else {"file": source.file, "line": source.line, "code": source.code},
    }


def _value_dict(differing: Differing | None, step: int) -> dict[str, Any] | None:
    if differing is None:
        return None
    return {
        "kind": differing.value.kind,
        "name": differing.value.name,
        "statistic": differing.statistic or None,
        "step": step,
        "a": finite(differing.a),
        "b": finite(differing.b),
        "relative": finite(differing.relative),
        "allowed": differing.allowed,
    }
