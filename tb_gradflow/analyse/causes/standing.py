"""Gradients that arrive, and that nothing applies: the variable never changes, in any of the recorded steps."""

from __future__ import annotations

from tb_gradflow.analyse.evidence import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.measured import is_zero
from tb_gradflow.analyse.standstill import SURE_FROM


def gradient_not_applied(suspect: Suspect) -> Verdict | None:
    """A warning where all that a loss was differentiated by stands still, in enough steps; where a part of it does,
    somebody may hold it still on purpose, by a rate of zero or a bound."""
    standstill, variable = suspect.measured.standstill, suspect.state.variable
    if variable not in standstill or _is_part_of_inner_gradient(suspect):
        return None
    sure = standstill[variable] >= SURE_FROM and whole_loss_stands(suspect)
    return Verdict("gradient_not_applied", "warning" if sure else "info", NO_OP)


def nothing_applied(suspect: Suspect) -> Verdict | None:
    """The same where no variable changes at all: a warning in the better part of a run, while gradients are about as
    large as in the beginning."""
    rest, gradient = suspect.measured.rest, suspect.state.gradient
    if rest is None or gradient is None or is_zero(gradient) or _is_part_of_inner_gradient(suspect):
        return None
    return Verdict("gradient_not_applied", "warning" if rest.sure else "info", NO_OP)


def whole_loss_stands(suspect: Suspect) -> bool:
    """Whether no variable changes that the same loss gives a gradient."""
    measured, trace = suspect.measured, suspect.topology.trace

    def search() -> bool:
        return all(
            entry.variable in measured.standstill
            for entry in trace.variable_gradients
            if entry.target == suspect.target
            and trace.variables[entry.variable].trainable
            and (gradient := measured.of_variable(entry)) is not None
            and not is_zero(gradient)
        )

    return measured.once(("stands", suspect.target), search)


def _is_part_of_inner_gradient(suspect: Suspect) -> bool:
    """Whether another loss is made of this gradient: images are learned by the gradients that they give a network, and
    the network is not."""
    topology, measured = suspect.topology, suspect.measured
    behind = measured.once(
        "inner gradients",
        lambda: topology.leading_to({place for place, op in enumerate(topology.trace.ops) if op.backward}),
    )
    arrives = topology.gradient(suspect.target).hops
    return any(reader in behind and arrives[reader] >= 0 for reader in topology.readers[suspect.state.variable])
