"""Steps in which no gradient was seen: they do not count as healthy."""

from __future__ import annotations

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.report import Finding, SourceReport
from tb_gradflow.record.schema import Trace

_RECORD_IT = (
    "Request the gradient inside the code that is recorded: `with tf.GradientTape() as tape: loss = loss_fn(...)`, "
    "then `tape.gradient(loss, model.trainable_variables)`; or pass the loss function itself to "
    "`tb_gradflow.explain(loss_fn, args=(...), variables=[...])`."
)


def unobserved(topology: Topology) -> tuple[Finding, ...]:
    """A warning if a step requested no gradient, or only gradients of unknown tensors."""
    trace = topology.trace
    if not trace.targets:
        return (
            _finding("Not verified: no gradient was requested in this step, so none was seen.", _RECORD_IT, trace, -1),
        )
    if trace.variable_gradients:
        return ()
    line = next((place for place, target in enumerate(trace.targets) if target.source is not None), -1)
    if any(target.sources != 0 for target in trace.targets):
        return (
            _finding(
                "Not verified: this step requests no gradient of a variable, or of a tensor that could be followed, "
                "so none was seen.",
                "Request the gradient of variables, or of tensors that the step computes with: "
                "`tape.gradient(loss, model.trainable_variables)`.",
                trace,
                line,
            ),
        )
    return (
        _finding(
            "Not verified: `tape.gradient` was given an empty list, so no gradient was seen.",
            "Check that list: a model has no trainable variables before it is built, or while `trainable = False`.",
            trace,
            line,
        ),
    )


def _finding(message: str, fix: str, trace: Trace, target: int) -> Finding:
    place = trace.targets[target].source if target >= 0 else None
    source = trace.sources[place] if place is not None else None
    return Finding(
        cause="not_measured",
        severity="warning",
        variables=(),
        op=None,
        source=SourceReport(source.file, source.line, source.code) if source is not None else None,
        message=message,
        fix=fix,
        target=target,
        culprit=-1,
        path=(),
    )
