"""Blocks of `gradient_override_map` that replace nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.analyse.words.overrides import place_of
from tb_gradflow.record.report import Finding, SourceReport
from tb_gradflow.record.schema import Override, Trace

CAUSE = "override_without_effect"


def overrides_without_effect(trace: Trace, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Information on each, unless a finding on an op of that type says it already."""
    told = {trace.ops[finding.culprit].type for finding in findings if finding.culprit >= 0}
    return tuple(_finding(trace, each) for each in trace.overrides if not each.used and each.type not in told)


def _finding(trace: Trace, override: Override) -> Finding:
    source = trace.sources[override.source] if override.source is not None else None
    return Finding(
        cause=CAUSE,
        severity="info",
        variables=(),
        op=None,
        source=SourceReport(source.file, source.line, source.code) if source is not None else None,
        message=f"The `gradient_override_map`{place_of(trace, override)} replaces nothing: no `{override.type}` op is "
        f"made inside of its block, so the gradient `{override.gradient}` is not used.",
        fix=f"Move the call that makes the `{override.type}` op into the block, or name the type of an op that is made "
        "there. A `tf.GradientTape` does not look at such maps: for it write the function with `tf.custom_gradient`.",
        target=-1,
        culprit=-1,
        path=(),
    )
