"""A `gradient_override_map` that replaces nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.requests import is_by_tape
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.analyse.words.overrides import is_function, out_of_reach, place_of
from tb_gradflow.record.report import Finding, SourceReport
from tb_gradflow.record.schema import Override, Trace


def overrides_without_effect(trace: Trace, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Information for each, unless a finding about an op of that type already says so."""
    told = {trace.ops[finding.culprit].type for finding in findings if finding.culprit >= 0}
    return tuple(_finding(trace, each) for each in trace.overrides if not each.used and each.type not in told)


def _finding(trace: Trace, override: Override) -> Finding:
    source = trace.sources[override.source] if override.source is not None else None
    return Finding(
        cause=CAUSE.name,
        severity="info",
        variables=(),
        op=None,
        source=SourceReport(source.file, source.line, source.code) if source is not None else None,
        message=f"The `gradient_override_map`{place_of(trace, override)} has no effect: no `{override.type}` op is "
        f"created inside its block, so the gradient `{override.gradient}` is not used.",
        fix=f"Move the call that creates the `{override.type}` op into the block, or name the type of an op that is "
        f"created there. `tf.GradientTape` ignores such maps: use `tf.custom_gradient` with it.",
        target=-1,
        culprit=-1,
        path=(),
    )


def ignored_override(group: Group) -> str:
    """A sentence about a gradient that the user registered for the culprit without effect; empty if there is none."""
    if group.op is None or is_function(group):
        return ""
    kind = group.op.type
    # An eager op does not keep the name of the gradient that was meant to replace its own.
    name = next((each.gradient for each in group.trace.overrides if each.used and each.type == kind), None)
    is_outside = name is None or not is_by_tape(group.trace)
    if group.op.custom_gradient is None and (is_outside or not _is_cut(group)):
        return out_of_reach(group.trace, kind) if _is_cut(group) else ""
    if any(check.op == group.culprit for check in group.trace.gradient_checks):
        return ""
    return (
        f" The override `{group.op.custom_gradient or name}` has no effect: `tf.GradientTape` ignores "
        f"`gradient_override_map`. Only `tf.custom_gradient` works with it."
    )


def _is_cut(group: Group) -> bool:
    return group.suspect.state.status in ("disconnected", "zero")


CAUSE = Cause(
    name="override_without_effect",
    meaning="a `gradient_override_map` whose block creates no op of the type that it names, in code that the loss "
    "depends on",
    severity="info",
    fix="move the op into the block, or name its type; with a tape, use `tf.custom_gradient`",
)
