"""From one recorded step to everything that it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.causes.left_graph.python_constant import constants_kept
from tb_gradflow.analyse.causes.strength.loss_spike import findings_of_spikes
from tb_gradflow.analyse.causes.updates.gradient_clipped import findings_of_clips
from tb_gradflow.analyse.causes.updates.steps_skipped import findings_of_skipped
from tb_gradflow.analyse.causes.updates.uneven_updates import findings_of_updates
from tb_gradflow.analyse.causes.wrong_value.index_out_of_range import findings_of_indices
from tb_gradflow.analyse.causes.wrong_value.mask_dropped import masks_dropped
from tb_gradflow.analyse.causes.wrong_value.override_without_effect import overrides_without_effect
from tb_gradflow.analyse.experiments.evidence import with_evidence
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.over_time.onset import as_measured, told_first
from tb_gradflow.analyse.over_time.run_context import ALONE, RunContext
from tb_gradflow.analyse.report.as_written import as_written
from tb_gradflow.analyse.report.findings import findings_of
from tb_gradflow.analyse.report.graph_edits import with_reason_in_graphs
from tb_gradflow.analyse.report.of_terms import with_terms
from tb_gradflow.analyse.report.summary import summary_of, unverified_in
from tb_gradflow.analyse.report.unverified import unobserved
from tb_gradflow.analyse.step.learnable import fit_in
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.overall import after_a_long_step, overall_verdict
from tb_gradflow.analyse.step.status import State, states, without_noise
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import REPORT_FORMAT, SEVERITIES, Diagnosis, Finding, VariableReport
from tb_gradflow.record.schema import Session, StepValues, Trace


def diagnose(
    trace: Trace,
    session: Session,
    gradients: npt.NDArray[np.float32] | None,
    variables: npt.NDArray[np.float32] | None,
    losses: tuple[float, ...],
    step: int,
    *,
    topology: Topology | None = None,
    context: RunContext = ALONE,
    values: StepValues | None = None,
) -> Diagnosis:
    """What the step says: a status for each variable, and findings in words.

    `gradients` is `[rows, 6]` and `variables` `[variables, 4]` of that step, both None if no step was completed
    (then `step` is -1): structure alone speaks. Pass the same `topology` for every step of a trace; without one
    it is built. `context` is what the other steps of the run say.
    """
    topology = topology if topology is not None else Topology(trace)
    measured = Measured(topology, gradients, variables, losses, context, values)
    measured.step = step
    first = states(topology, measured)
    told = findings_of(measured, first, session.expected)
    findings = told_first(context.onset, as_measured(context.broke_before, told.findings))
    findings = (*findings, *masks_dropped(measured), *constants_kept(measured))
    findings = (*findings, *overrides_without_effect(trace, findings))
    indices = tuple(findings_of_indices(measured, context.raised))
    findings = with_terms(measured, findings) or (() if indices else unobserved(topology))
    findings = with_evidence(measured, first, findings)
    if indices:
        findings = _by_severity((*indices, *(each for each in findings if not _is_without_a_step(each))))
    findings = (*findings, *findings_of_spikes(trace, measured.spikes, step))
    findings = _with_updates(measured, findings)
    findings = as_written(trace, findings)
    findings = with_reason_in_graphs(trace, findings)
    found = tuple(without_noise(state) if state.variable in told.noise else state for state in first)
    listed = _listed(topology, findings)
    shown = tuple(state for state in found if listed[state.variable])
    verdict = overall_verdict(measured, shown, findings, summary_of(measured, shown, findings))
    findings = after_a_long_step(measured, shown, findings)
    return Diagnosis(
        format=REPORT_FORMAT,
        step=step,
        trace=trace.index,
        summary=verdict.text,
        variables=tuple(_report(trace, state, listed[state.variable]) for state in found),
        findings=findings,
        unverified=unverified_in(measured, findings, told.inexact),
        terms=terms_in(measured),
        verdict=verdict,
        fit=fit_in(measured),
    )


def _with_updates(measured: Measured, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The same with how far the step moves variables, where nothing else is known to be wrong with them. A clip is why
    elements do not move that would do so without it."""
    told = {name for each in findings if each.severity != "info" for name in each.variables}
    clips = tuple(findings_of_clips(measured, told))
    clipped = {name for each in clips if each.severity != "info" for name in each.variables}
    kept = [each for each in findings if not (_is_of_standstill(each) and {*each.variables} <= clipped)]
    told = clipped.union(*(each.variables for each in kept))
    added = (*findings_of_skipped(measured), *clips, *findings_of_updates(measured, told))
    if not added:
        return findings
    return _by_severity((*kept, *added))


def _by_severity(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _is_without_a_step(finding: Finding) -> bool:
    """Whether it only says that no step was completed, of which the reason is known."""
    return finding.cause == "not_measured" and finding.severity == "warning"


def _is_of_standstill(finding: Finding) -> bool:
    return finding.cause == "gradient_not_applied" and finding.severity == "info"


def _listed(topology: Topology, findings: Sequence[Finding]) -> list[bool]:
    """For each variable, whether it belongs to the model, or to what the caller named, or is named in a finding, or
    takes part in a loss although nothing is to train it, or is trained although no model lists it: a plain
    `tf.Variable` that a `train_step` hands to its tape and its optimizer.

    Where no model lists any, such as in a loop of the user's own, all that the step reads belong to it.
    """
    trace = topology.trace
    told = {name for finding in findings for name in finding.variables}
    is_model = any(variable.tracked for variable in trace.variables)
    asked = {entry.variable for entry in trace.variable_gradients if entry.outcome != "not_asked"}
    return [
        variable.tracked
        or not is_model
        or variable.name in told
        or number in asked
        or _is_frozen_part(topology, number)
        for number, variable in enumerate(trace.variables)
    ]


def _is_frozen_part(topology: Topology, number: int) -> bool:
    """Whether a loss is computed from a variable that is not to be trained, such as a weight of a frozen network."""
    if topology.trace.variables[number].trainable or not topology.trace.whole:
        return False
    return any(topology.receives(number, target) for target in range(len(topology.trace.targets)))


def _report(trace: Trace, state: State, listed: bool) -> VariableReport:
    variable = trace.variables[state.variable]
    return VariableReport(
        variable.name, state.status, variable.shape, variable.dtype, state.gradient, listed, variable.written
    )
