"""Weights that one update of a step breaks, and from which the same step then computes another loss.

A step with two losses, such as that of a GAN, updates the variables of one before it computes the other.
"""

from __future__ import annotations

from tb_gradflow.analyse.step.measured import Measured


def broken_meanwhile(measured: Measured, target: int) -> tuple[int, ...]:
    """The variables that the target is computed from after the step has broken them: they were finite before it, an
    earlier target gave them a gradient that is not, and they are read after the update with that gradient."""
    return measured.once(("meanwhile", target), lambda: _broken_meanwhile(measured, target))


def _broken_meanwhile(measured: Measured, target: int) -> tuple[int, ...]:
    if measured.loss_is_finite(target) and measured.knows_loss(target):
        return ()
    trace = measured.topology.trace
    influence = measured.topology.influence(target).hops
    read = {op.reads for index, op in enumerate(trace.ops) if op.updated and influence[index] >= 0}
    broken = [variable for variable in sorted(measured.nonfinite_after) if variable in read]
    return tuple(variable for variable in broken if is_broken_before(measured, variable, target))


def is_broken_before(measured: Measured, variable: int, target: int) -> bool:
    """Whether an earlier target gave a variable a gradient that is not finite."""
    earlier = [each for each in measured.topology.entries_of(variable) if each.target < target]
    reports = [measured.of_variable(entry) for entry in earlier]
    return any(report is not None and (report.nan_count or report.inf_count) for report in reports)
