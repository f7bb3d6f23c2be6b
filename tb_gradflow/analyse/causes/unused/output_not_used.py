"""No path leads from the variable to the loss."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.unused.siblings import siblings_of
from tb_gradflow.analyse.edits.wiring import accumulated, result_kept, result_read, term_added
from tb_gradflow.analyse.evidence.parts import is_split
from tb_gradflow.analyse.evidence.requests import nobody_asked
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.graph.dead_terms import term_in_vain
from tb_gradflow.analyse.graph.dropped_layer import dropped_layer
from tb_gradflow.analyse.graph.same_named import copy_in_use, twin_in_use
from tb_gradflow.analyse.graph.stopped import STOPS, keeps_value_alone
from tb_gradflow.analyse.words.code import assigned_by, is_simple, targets_of
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    called,
    file_name,
    layer_of,
    network_of,
    place_of,
    quoted,
    result_of_line,
    unused_name,
)
from tb_gradflow.analyse.words.phrases import braces, in_layer, write_left_alone
from tb_gradflow.record.schema import Op


def rule(suspect: Suspect) -> Verdict | None:
    """The values computed from the variable never reach the loss, or nothing is computed from it. An error if no
    variable of its layer trains; a warning if some do, and for a tensor for which zeros are acceptable. Information for
    the learning rate of an optimizer of TensorFlow 1, which is trainable where nothing else is said.
    """
    variables, targets = suspect.topology.trace.variables, suspect.topology.trace.targets
    if variables[suspect.state.variable].computed and targets[suspect.target].unconnected == "zero":
        return Verdict("output_not_used", "warning")
    if variables[suspect.state.variable].computed:
        nobody = not _is_made_in_step(suspect)
        return Verdict("output_not_used", "info" if _is_spare_data(suspect) else "error", NO_OP if nobody else -1)
    if write_left_alone(suspect.topology.trace, suspect.culprit):
        return Verdict("output_not_used", "error")
    if suspect.culprit >= 0 and suspect.op.type.startswith(_UPDATES):
        return Verdict("output_not_used", "info")
    siblings = [index for index in siblings_of(suspect) if variables[index].trainable]
    alive = (
        any(suspect.topology.receives(index, suspect.target) for index in siblings) if suspect.target >= 0 else False
    )
    rests = variables[suspect.state.variable].elsewhere == "call"
    return Verdict("output_not_used", "warning" if alive or rests else "error")


_UPDATES = ("Apply", "ResourceApply")


def term_left_out(suspect: Suspect) -> Verdict | None:
    """A value that a straight-through estimator leaves without a gradient, such as the codes of a codebook, has a
    separate loss term; that term is computed but never reaches the loss."""
    left = suspect.state.status == "disconnected" and suspect.op.type in STOPS
    if not left or not keeps_value_alone(suspect.topology, suspect.culprit):
        return None
    term = term_in_vain(suspect.topology, suspect.state.variable)
    return Verdict("output_not_used", "error", term) if term >= 0 else None


def asked_for_a_copy(suspect: Suspect) -> Verdict | None:
    """Instead, a gradient was requested for a tensor that was computed from it, and the loss does not depend on that
    tensor."""
    topology, target = suspect.topology, suspect.target
    if not nobody_asked(suspect) or suspect.measured.moved(suspect.state.variable):
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


def part_not_used(suspect: Suspect) -> Verdict | None:
    """A part of a tensor is taken out of it, and the loss does not depend on that part. Information, because another
    loss, step or batch may use it."""
    names = _unused_names(suspect)
    discarded = bool(names) and all(name.startswith("_") for name in names)
    return None if discarded else Verdict("output_not_used", "info")


def _is_made_in_step(suspect: Suspect) -> bool:
    """Whether an op of the step computes a tensor, so that it is not an argument."""
    makers = suspect.topology.readers[suspect.state.variable]
    return any(suspect.type_of(op) not in ("Const", "Placeholder") for op in makers)


def _is_spare_data(suspect: Suspect) -> bool:
    """Whether a tensor depends on no variable, and a gradient arrives for another source of the same call: a list for
    several losses may contain more than one of them uses."""
    topology, place = suspect.topology, suspect.state.variable
    behind = [topology.made_by(op) | {op} for op in topology.readers[place]]
    kept = {op for other, ops in enumerate(topology.readers) if other != place for op in ops}
    others = [each for each in topology.trace.variable_gradients if each.target == suspect.target]
    return all(kept.isdisjoint(ops) for ops in behind) and any(each.outcome == "value" for each in others)


_UNREAD = "nothing in this step uses {them}"


def message_and_fix(group: Group) -> Text:
    """A variable outside of layers has no output that could be used; the variable itself must be used."""
    if any(group.trace.variables[variable].computed for variable in group.variables):
        return _no_part(group)
    if group.suspect.state.zeros:
        return _in_part(group)
    if group.suspect.state.status == "disconnected":
        return _left_out(group)
    why = "the value computed from {them} ends at {op} and never reaches the loss" if group.culprit >= 0 else _UNREAD
    python = _python_on_the_way(group) if group.culprit < 0 else -1
    if python >= 0:
        return _perhaps_read_in(group, python)
    twin = twin_in_use(group.suspect.topology, group.variables[0], group.suspect.target) if group.culprit < 0 else ""
    if twin:
        return Template(
            "{they_get} no gradient: the step uses another network with the same names, "
            f"`{twin}`, instead of {{them}}.",
            "Call the network that you want to train, not its copy; or pass the copy's variables to "
            "`tape.gradient(...)` and to the optimizer.",
        )(group)
    copy = copy_in_use(group.suspect.topology, group.suspect.target) if group.culprit < 0 else ""
    if copy:
        return Template(
            "{they_get} no gradient: nothing in this step uses {them}. The loss was computed by another network with "
            f"the same shapes, that of `{copy}`, for which no gradient is requested.",
            "Call the network that you want to train, not its copy; or pass the copy's variables to "
            "`tape.gradient(...)` and to the optimizer.",
        )(group)
    if group.culprit < 0 and group.trace.variables[group.variables[0]].elsewhere == "call":
        return Template(
            "{they_get} no gradient: {layer} is used in the model's `call`, and its `train_step` neither goes through "
            "`call` nor uses {them}.",
            "Use {layer} in `train_step`, on the path to the loss. Nothing to fix if it is trained in a later phase: "
            "then set its `trainable = False` in this one.",
        )(group)
    if group.source is not None and group.culprit >= 0 and ".add_loss(" in group.source.code:
        return Template(
            "{they_get} no gradient: the value computed from {them} is passed to `add_loss`{place}, but this step "
            "ignores the losses of the layers.",
            "Add them in the step, `loss += sum(model.losses)` (in the model's own `train_step`, `sum(self.losses)`); "
            "or use `self.compute_loss(x, y, y_pred)`, which adds them.",
        )(group)
    if write := write_left_alone(group.trace, group.culprit):
        return Template(
            "{they_get} no gradient: the value computed from {them} is written to a `tf.TensorArray`{place}, but the "
            "array that `write` returns is discarded, and the original does not change.",
            "Keep the array that it returns: `" + braces(write) + "`.",
        )(group)
    if group.culprit >= 0 and group.suspect.target >= 0 and group.trace.targets[group.suspect.target].op < 0:
        return Template(
            "{they_get} no gradient: the loss depends on no variable. The value computed from {them} ends at {op}.",
            "Compute the loss from what the model returns; in a loss function for `compile`, that is `y_pred`.",
        )(group)
    if (layer := dropped_layer(group.suspect.topology, group.culprit, group.suspect.target)) is not None:
        assert layer.source is not None
        line = group.trace.sources[layer.source]
        return Template(
            f"{{they_get}} no gradient: what `{layer.name}` ({file_name(line.file)}:{line.line}) computes from "
            "{them} never reaches the loss.",
            f"Use the output of `{layer.name}` on the path to the loss, or give it its own loss.",
        )(group)
    owners = {name.rpartition("/")[0] for name in group.names}
    networks = {network_of(name) for name in group.names}
    network = networks.pop() if len(owners) > 1 and len(networks) == 1 else ""
    result = result_of_line(group) if group.culprit >= 0 else ""
    if in_layer(group) and _is_number_of_layer(group, owners):
        fix = (
            "If {layer} passes it to `add_loss`, add such losses in the step: `loss += sum(model.losses)`. Otherwise, "
            "use it on the path to the loss, or give it its own loss."
        )
    elif result and group.op is not None and _is_number(group.op) and group.op.data:
        fix = f"Add `{result}`{{place}} to the loss, or use it on the path to the loss."
    elif group.culprit >= 0 and (len(owners) > 2 or (result and _is_in_use(group, owners))):
        what = f"`{result}`{{place}}" if result else "the result of {op}"
        fix = "Use " + what + " on the path to the loss, or give it its own loss."
    elif not in_layer(group):
        fix = (
            "Use {names} in the computation of the loss, or remove {them}. If the loss uses a tensor that was computed "
            "from {them} before the step, compute that tensor in the step."
        )
    elif _is_in_use(group, owners):
        fix = "Use {names} in what {layer} computes for the loss, or remove {them}."
    elif group.culprit < 0 and _is_called(group, owners):
        fix = (
            "Use {names} in what {layer} computes for the loss, or remove {them}. If it uses a number that was taken "
            "from {them} before, such as `float(...)` in `build`, compute that from {them} in `call`."
        )
    elif group.culprit >= 0 and _ends_outside(group, owners):
        what = f"`{result}`{{place}}" if result else "the result of {op}"
        fix = "Use " + what + " on the path to the loss, or give it its own loss."
    elif network and group.culprit >= 0 and not _is_in_use(group, {network}):
        fix = f"Use the output of `{network}` on the path to the loss, or give it its own loss."
    elif group.culprit >= 0:
        fix = "Use the output of {layer} on the path to the loss, `x = {attribute}(x)`, or give it its own loss."
    else:
        fix = "Call {layer} on the path to the loss, `x = {attribute}(x)`, or remove it from the model."
    return Template("{they_get} no gradient: " + why + ".", fix)(group)


def _in_part(group: Group) -> Text:
    """Only some elements are not used."""
    suspect = group.suspect
    if is_split(suspect.op):
        unused = [name for name in _unused_names(suspect) if not name.startswith("_")]
        lost = quoted(unused) if unused else "a part of its result"
        return Template(
            f"{SIZE}{lost}, which {{op}} takes from what is computed from {{them}}, "
            f"{'do' if len(unused) > 1 else 'does'} not reach this loss.",
            "Nothing to fix if another loss, step or batch uses it; otherwise, use it on the path to the loss.",
        )(group)
    if suspect.topology.influence(suspect.target).hops[group.culprit] >= 0:
        return Template(
            SIZE + "{op} is all that the loss uses of what is computed from {them}.",
            "Nothing to fix if the rest is not meant to be trained here; otherwise, use it as well.",
        )(group)
    return Template(
        SIZE + "{op} holds what is computed from these elements, and does not reach this loss.",
        "Nothing to fix if another loss, step or batch uses it; otherwise, use it on the path to the loss.",
    )(group)


def _unused_names(suspect: Suspect) -> list[str]:
    """The names that the user's line gives to those parts of a split that the loss does not use."""
    source = suspect.topology.trace.sources[suspect.op.source] if suspect.op.source is not None else None
    names = targets_of(source.code, ("split", "unstack")) if source is not None and is_split(suspect.op) else []
    whole = len(names) == len(suspect.op.outputs)
    return [name for output, name in enumerate(names) if output in _unused_outputs(suspect)] if whole else []


def _unused_outputs(suspect: Suspect) -> set[int]:
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    used = {edge.output for user, edge in topology.consumers[suspect.culprit] if influence[user] >= 0}
    return set(range(len(suspect.op.outputs))) - used


def _perhaps_read_in(group: Group, python: int) -> Text:
    """Reads inside a Python function are not in the graph: the variables may be read there, or not at all."""
    call = called(group.trace, python)
    where = f"If the function called by {call}{place_of(group.trace, python)} reads {{them}}, this is the reason: "
    if group.trace.ops[python].type == "EagerPyFunc":
        why, fix = (
            "such a function passes a gradient only to its arguments.",
            "`tf.py_function(f, [x, {variable}], x.dtype)`",
        )
        fix = "Pass {names} to that function as arguments, " + fix
    else:
        why, fix = (
            "such a function passes no gradient at all.",
            f"Compute that with TensorFlow functions, outside of {call}",
        )
    return Template(
        "{they_get} no gradient: no TensorFlow op in this step uses {them}. " + where + why,
        fix + "; if it does not use {them}, use {names} in the computation of the loss, or remove {them}.",
    )(group)


def _python_on_the_way(group: Group) -> int:
    """The `tf.py_function` or `tf.numpy_function` that the loss is computed through, whose function may read anything;
    -1 if there is none."""
    topology, target = group.suspect.topology, group.suspect.target
    reaches = topology.influence(target).hops if target >= 0 else ()
    kinds = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
    return next((op for kind in kinds for op in topology.by_type.get(kind, ()) if reaches and reaches[op] >= 0), -1)


def _is_in_use(group: Group, owners: set[str]) -> bool:
    """Whether the loss is computed from other variables of the same layer, or of layers in it, so that the layer is
    called already."""
    topology, target, own = group.suspect.topology, group.suspect.target, set(group.variables)
    others = [(place, each.name) for place, each in enumerate(group.trace.variables) if place not in own]
    return target >= 0 and all(
        any(name.startswith(owner + "/") and topology.influences(place, target) for place, name in others)
        for owner in owners
    )


def _is_called(group: Group, owners: set[str]) -> bool:
    """Whether the step calls the layer of these variables, which does not read them."""
    called = {layer_of(group.trace, op).rpartition("/")[2] for op in range(len(group.trace.ops))}
    return {owner.rpartition("/")[2] for owner in owners} <= called


def _ends_outside(group: Group, owners: set[str]) -> bool:
    """Whether the user's line created the last op, after the layers of these variables."""
    called_here = group.op is not None and group.op.api is not None and group.source is not None
    inside = layer_of(group.trace, group.culprit).rpartition("/")[2]
    return called_here and inside not in {owner.rpartition("/")[2] for owner in owners}


def _is_number_of_layer(group: Group, owners: set[str]) -> bool:
    """Whether the path ends inside the layer of these variables, in a scalar, which seems to be a loss."""
    if group.op is None or not _is_number(group.op):
        return False
    inside = layer_of(group.trace, group.culprit).rpartition("/")[2]
    return {inside} == {owner.rpartition("/")[2] for owner in owners}


def _is_number(op: Op) -> bool:
    return bool(op.outputs) and op.outputs[0].shape == ()


def _left_out(group: Group) -> Text:
    """A term that would train what a straight-through estimator does not, but that is not added to the loss."""
    term = assigned_by(group.source.code) if group.source is not None else ""
    stop = called(group.trace, group.suspect.culprit) + place_of(group.trace, group.suspect.culprit)
    add = f"`self.add_loss({term})`{{place}}" if layer_of(group.trace, group.culprit) else f"`{term}`{{place}}"
    return Template(
        "{they_get} no gradient: the value computed from {them} ends at {op} and never reaches the loss, and the one "
        "that does "
        f"reach it is detached by {stop}.",
        f"Add it to the loss: {add}.",
    )(group)


def _made_of(group: Group) -> list[int]:
    """The variables from which both the tensors of a group and the loss were computed."""
    topology, target = group.suspect.topology, group.suspect.target
    makers = [
        op for place in group.variables if group.trace.variables[place].computed for op in topology.readers[place]
    ]
    behind = set(makers).union(*(topology.made_by(op) for op in makers))
    return [
        place
        for place, each in enumerate(group.trace.variables)
        if not each.computed and not behind.isdisjoint(topology.readers[place])
        if target >= 0 and topology.influences(place, target)
    ]


def _no_part(group: Group) -> Text:
    """A tensor that is not on the path to the loss, and the variables from which it was computed."""
    variables = group.trace.variables
    names = [variables[place].name for place in group.variables if variables[place].computed]
    tensors = quoted(names)
    used = [variables[place].name for place in _made_of(group)]
    made = (
        "{op} creates " + tensors + (f" from {quoted(used)}" if used else "") + ", but " if group.culprit >= 0 else ""
    )
    instead = (
        f"request the gradient of {quoted(used)}, from which the loss was computed"
        if used
        else "request the gradient of what the loss was computed from"
    )
    target = group.suspect.target
    name = group.trace.targets[target].name if target >= 0 else ""
    loss, told = "the loss", "the loss"
    if name.isidentifier() and name != "loss":
        loss, told = f"`{name}`", f"`{name}`{{line}}"
    fix = f"Compute {loss} from {tensors}, and request the gradient of that"
    if len(names) == 1 and not is_simple(names[0]):
        # An expression that is written twice, in the loss and in the request, gives two tensors.
        v = unused_name(group, "moved", "point")
        fix = f"Create the tensor once, before the loss: `{v} = {names[0]}`. Compute {loss} from `{v}`, and request "
        fix += f"the gradient of `{v}`"
    return Template(
        "{they_get} no gradient: " + made + told + f" was not computed from {tensors}. A gradient depends on how the "
        f"loss was computed, not on equal values.",
        f"{fix}; or {instead}.",
    )(group)


CAUSE = Cause(
    name="output_not_used",
    meaning="no path leads to the loss; the finding names the op at which the path ends. An error if nothing in its "
    "layer trains, a warning if something does. Also a tensor, such as `w + delta`, whose gradient is requested "
    "although the loss was not computed from it, reported with the variable that it was computed from. "
    "Information if the gradient is zero in a part of a variable, in as many elements as a slice has that the loss "
    "does not use, or as are left out of the slice that it uses",
    severity="error, warning, info",
    fix="use the output, or give it a loss",
    text=message_and_fix,
    verb="is where the path ends",
    edits=(result_kept, accumulated, term_added, result_read),
)
