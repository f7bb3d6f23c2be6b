"""A Python number that a compiled step reads, and that has changed, or should have, since it was compiled."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.user_code.code import program_of
from tb_gradflow.analyse.user_code.value_flow import lines_computed_from, updates_under
from tb_gradflow.analyse.words.names import file_name
from tb_gradflow.record.report import Finding, SourceReport
from tb_gradflow.record.schema import KeptNumber


def constants_kept(measured: Measured) -> Iterator[Finding]:
    """A warning for each that the loss, or its gradient, is computed with, or that decides what is updated."""
    trace = measured.topology.trace
    for kept in measured.kept_numbers:
        read = program_of(trace).statement_at(kept.file, kept.line)
        function = read[0].function(read[1]) if read is not None else None
        if read is None or function is None:
            continue
        code, _ = read
        before = code.passage.line - 1
        ran = {each.line - before for each in trace.sources if each.file == kept.file}
        lines = {line + before for line in lines_computed_from(function, kept.name, ran)}
        numbers = {number for number, each in enumerate(trace.sources) if each.file == kept.file and each.line in lines}
        target = _target_of(measured, numbers)
        decides = target is None and updates_under(function, kept.name)
        if target is not None or decides:
            yield _finding(
                kept, code.lines[kept.line - code.passage.line], target or 0, "decides" if decides else "computes"
            )


def _target_of(measured: Measured, sources: set[int]) -> int | None:
    """The loss that ops of these lines lead to, or whose gradient these lines request; `None` if there is none."""
    topology = measured.topology
    ops = [number for number, op in enumerate(topology.trace.ops) if op.source in sources]
    for number, target in enumerate(topology.trace.targets):
        if target.source in sources or any(topology.influence(number).hops[op] >= 0 for op in ops):
            return number
    return None


def _finding(kept: KeptNumber, line: str, target: int, does: str) -> Finding:
    where = f"`{kept.name}` ({file_name(kept.file)}:{kept.line})"
    is_counter = kept.now == kept.kept
    if is_counter:
        message = (
            f"The step {does} with {where}, which it also updates. That is a plain Python number, and a compiled "
            "step runs its Python code only once, while it is compiled: since then, it has had "
            "the same value for all steps."
        )
    else:
        message = (
            f"The step {does} with {where}, a plain Python number. It was {kept.kept:.6g} when the step was "
            f"compiled, and for the step it still is, although the number was {kept.now:.6g} later."
        )
    change = "assign_add(1.0)" if is_counter else "assign(...)"
    first = 0.0 if is_counter else kept.kept
    return Finding(
        cause=CAUSE.name,
        severity="warning",
        variables=(),
        op=None,
        source=SourceReport(kept.file, kept.line, line.strip()),
        message=message,
        fix=f"Make it a variable, `{kept.name} = tf.Variable({float(first)!r}, trainable=False)`, and "
        f"change it with `{kept.name}.{change}`. Compute with TensorFlow's functions: `tf.minimum` instead of `min`, "
        "`tf.cond` instead of `if`.",
        target=target,
        culprit=-1,
        path=(),
    )


CAUSE = Cause(
    name="python_constant",
    meaning="the loss is computed with a plain Python number that has changed since the step was compiled, or that the "
    "step itself should change: a compiled step keeps the first value",
    severity="warning",
    fix="a `tf.Variable`, changed with `assign`",
    headline="The step computes with a Python number from when it was compiled.",
)
