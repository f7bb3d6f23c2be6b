"""Ways that pass gradient all along, and none arrives: the tape, or the call of `gradient`, is to blame."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import scopes_of
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.not_computed import inverting_ops, is_refused_by_xla, refused_op
from tb_gradflow.record.schema import Trace


def xla_boundary(suspect: Suspect) -> Verdict | None:
    """Running the step failed where XLA was to compile the gradient of a function."""
    refused = is_refused_by_xla(suspect.topology, suspect.state.variable, suspect.target)
    return Verdict("xla_boundary", "error", refused_op(suspect.topology)) if refused else None


def gradient_failed(suspect: Suspect) -> Verdict | None:
    """The tape saw the way, and computing the gradient raised: of a matrix that has no inverse, or whatever it says."""
    entry = suspect.state.entry
    if entry is None or entry.outcome != "error" or not suspect.topology.trace.failure:
        return None
    singular = next(iter(inverting_ops(suspect.topology, suspect.target)), -1)
    return Verdict("degenerate_decomposition" if singular >= 0 else "not_measured", "error", singular)


def not_measured(suspect: Suspect) -> Verdict | None:
    """Structure lets the gradient through, and no step was completed that could show how large it is."""
    return Verdict("not_measured", "warning")


def asked_for_a_copy(suspect: Suspect) -> Verdict | None:
    """In its place a gradient was asked for a tensor that was computed from it, and the loss was not made of that."""
    topology, target = suspect.topology, suspect.target
    if not _nobody_asked(suspect) or suspect.measured.moved(suspect.state.variable):
        return None
    variables = topology.trace.variables
    computed = suspect.measured.once(
        "computed", lambda: [place for place, each in enumerate(variables) if each.computed]
    )
    for place in computed:
        if topology.influences(place, target):
            continue
        for made in topology.readers[place]:
            if not topology.made_by(made).isdisjoint(topology.readers[suspect.state.variable]):
                return Verdict("output_not_used", "error", made)
    return None


def tensor_not_watched(suspect: Suspect) -> Verdict | None:
    """A tensor that was made in front of the tape's block is none of those that the tape follows."""
    computed = suspect.topology.trace.variables[suspect.state.variable].computed
    return Verdict("tape_not_watching", "error") if computed else None


def untracked_variable(suspect: Suspect) -> Verdict | None:
    """Watched, trainable, on a differentiable way, and the model does not list it, so nobody asks for it.

    An error where the step itself makes it, anew each time, and a warning of a layer's plain `tf.Variable`. Else
    information only: a frozen network inside a loss looks the same, as Keras's flag is not TensorFlow's.
    """
    variables = suspect.topology.trace.variables
    variable = variables[suspect.state.variable]
    listed = any(each.tracked and not each.computed for each in variables)
    if variable.tracked or not listed or not _nobody_asked(suspect):
        return None
    # What the step computes from other variables and keeps in one of its own is state.
    is_state = any(op.writes == suspect.state.variable for op in suspect.topology.trace.ops)
    if is_state:
        return Verdict("untracked_variable", "info")
    return Verdict(
        "untracked_variable", "error" if variable.made else "warning" if is_plain_of_a_layer(suspect) else "info"
    )


def is_plain_of_a_layer(suspect: Suspect) -> bool:
    """Whether a layer of Keras computes with a `tf.Variable` that is none of Keras's: these have their layer's name in
    front of their own. Keras 3 does not list it, whatever attribute holds it."""
    trace, place = suspect.topology.trace, suspect.state.variable
    if "/" in trace.variables[place].name or suspect.measured.moved(place):
        return False
    layers = {layer.scope for layer in trace.layers}
    named = any(each.tracked and "/" in each.name for each in trace.variables)
    readers = suspect.topology.readers[place]
    return named and bool(readers) and all(layers.intersection(scopes_of(trace.ops[op].name)) for op in readers)


def not_in_gradient_sources(suspect: Suspect) -> Verdict | None:
    """A trainable variable that `tape.gradient` was not given.

    One that the step changes all the same is trained by another way, such as the gradient of a perturbed copy. Of a
    step that raised while it was traced nobody knows what it would have asked for next. An error where it was given
    nothing at all.
    """
    if not _nobody_asked(suspect):
        return None
    if suspect.measured.moved(suspect.state.variable) or ended_early(suspect.measured):
        return Verdict("not_in_gradient_sources", "info")
    return Verdict("not_in_gradient_sources", "error" if asked_for_nothing(suspect.topology.trace) else "warning")


def asked_for_nothing(trace: Trace) -> bool:
    """Whether the list that `tape.gradient` was given is empty, in all its calls. Older logs do not have its length."""
    counts = [target.sources for target in trace.targets]
    empty = all(entry.outcome == "not_asked" for entry in trace.variable_gradients)
    return all(count == 0 for count in counts) or (empty and all(count is None for count in counts))


def ended_early(measured: Measured) -> bool:
    """Whether the step may have raised before it came to its end: more may have been meant to follow."""
    trace = measured.topology.trace
    raised = any(entry.outcome == "error" for entry in trace.variable_gradients)
    return measured.gradients is None and (raised or not trace.failure)


def tape_not_watching(suspect: Suspect) -> Verdict | None:
    """The tape watched what it was told to and not this one: `watch_accessed_variables=False`."""
    entry = suspect.state.entry
    if entry is None or entry.watched or suspect.topology.trace.targets[entry.target].automatic:
        return None
    others = any(other.watched and other.target == entry.target for other in suspect.topology.trace.variable_gradients)
    return Verdict("tape_not_watching", "error") if others else None


def tape_scope(suspect: Suspect) -> Verdict | None:
    """Whatever else: the forward pass, or a part of it, ran where the tape did not see it."""
    return Verdict("tape_scope", "error")


def _nobody_asked(suspect: Suspect) -> bool:
    return suspect.state.entry is not None and suspect.state.entry.outcome == "not_asked"
