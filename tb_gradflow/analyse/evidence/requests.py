"""Whether anybody requested a gradient, and with which function."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Trace


def nobody_asked(suspect: Suspect) -> bool:
    return suspect.state.entry is not None and suspect.state.entry.outcome == "not_asked"


def listed_in_vain(topology: Topology, target: int) -> tuple[int, ...]:
    """The variables for which a gradient of a loss was requested, if it reaches none of them, and each gets one from
    another loss."""
    entries = topology.trace.variable_gradients
    listed = [each for each in entries if each.target == target and each.outcome != "not_asked"]
    taught = {each.variable for each in entries if each.outcome == "value"}
    in_vain = all(
        each.outcome == "none" and each.variable in taught and not topology.receives(each.variable, target)
        for each in listed
    )
    return tuple(each.variable for each in listed) if in_vain else ()


_TAPE = "tape.gradient"
_OTHERS = {".minimize(": "minimize", ".compute_gradients(": "compute_gradients", ".gradients(": "tf.gradients"}


def requested_with(trace: Trace) -> str:
    """`tape.gradient`; or the function of TensorFlow 1 in the line of the request, as far as the log has that line."""
    for target in trace.targets:
        code = trace.sources[target.source].code if target.source is not None else ""
        for call, name in _OTHERS.items():
            if call in code and "tape" not in code:
                return name
    return _TAPE


def is_by_tape(trace: Trace) -> bool:
    """Whether a tape computed the gradients, as far as is known."""
    return requested_with(trace) == _TAPE


def is_by_keras(suspect: Suspect) -> bool:
    """Whether Keras computes the loss and its gradient, so that no line of the user's code requests it and Keras passes
    it to the optimizer."""
    trace = suspect.topology.trace
    target = trace.targets[suspect.target] if suspect.target >= 0 else None
    if target is None or target.source is not None or target.op < 0:
        return False
    return trace.ops[target.op].name.startswith("compile_loss/")
