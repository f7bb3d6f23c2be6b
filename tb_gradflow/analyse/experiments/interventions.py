"""What a change of the step made of its gradients, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.experiments.wording import apart, loss_called
from tb_gradflow.analyse.graph.op_sets import QUOTIENTS
from tb_gradflow.analyse.words.names import called
from tb_gradflow.record.experiments import ChangedGradient, Intervention
from tb_gradflow.record.report import Evidence, Finding
from tb_gradflow.record.schema import Trace

_MOST_ROWS = 5


def of_interventions(trace: Trace, known: Sequence[Intervention], finding: Finding) -> Iterator[Evidence]:
    """Those with the op of a finding, and with the rows of the batch, as far as they change a gradient of its
    variables."""
    names = {number: each.name for number, each in enumerate(trace.variables) if each.name in finding.variables}
    for each in known:
        # Rows are left out where something is not finite: in other findings nothing is said about them.
        if each.target == finding.target and each.op in (finding.culprit, -1):
            changed = [gradient for gradient in each.gradients if gradient.variable in names]
            if changed:
                most = max(changed, key=lambda gradient: gradient.after)
                yield _of(trace, each, most, names[most.variable], len(changed))


def _of(trace: Trace, known: Intervention, gradient: ChangedGradient, name: str, count: int) -> Evidence:
    loss = loss_called(trace, known.target)
    what = _of_rows(known) if known.op < 0 else _of_tensor(trace, known)
    was_finite = not gradient.was_broken
    before = f"{gradient.before:.3g}" if was_finite else "not finite"
    become = f"at most {gradient.after:.3g}" if gradient.after else "zero"
    text = f"{what}, the {loss} is {_loss(known)}, and the gradient of `{name}` is {become} instead of {before}"
    others = "" if count == 1 else f"; so are those of {count - 1} more" * (not was_finite)
    of = "batch" if known.op < 0 else trace.ops[known.op].name
    change = gradient.after - gradient.before if was_finite else None
    return Evidence("intervention", of, name, change, gradient.before if was_finite else None, f"{text}{others}.")


def _loss(known: Intervention) -> str:
    if known.after is None:
        return "not finite"
    if known.before is None:
        return f"{known.after + 0.0:.3g} instead of not finite"
    before, after = apart(known.before, known.after)
    return after if before == after else f"{after} instead of {before}"


def _of_tensor(trace: Trace, known: Intervention) -> str:
    op = trace.ops[known.op]
    several = len({edge.input for edge in op.inputs}) > 1
    part = f"input {known.input + 1}" if several else "input"
    if op.type in QUOTIENTS:
        part = ("dividend", "divisor")[known.input]
    of = f"the {part} of {called(trace, known.op)}"
    if known.added:
        way = "added to" if known.added > 0 else "subtracted from"
        return f"With {abs(known.added):.3g} {way} {of}"
    return f"With {of} multiplied by {known.factor:.3g}"


def _of_rows(known: Intervention) -> str:
    shown = [str(each) for each in known.rows]
    if len(shown) > _MOST_ROWS:
        shown = [*shown[: _MOST_ROWS - 1], f"{len(shown) - _MOST_ROWS + 1} more"]
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"With row{'s' * (len(known.rows) > 1)} {listed} of the batch replaced by row {known.copied}"
