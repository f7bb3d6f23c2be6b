"""The model does not track the variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.tape.left_out import (
    KERNELS,
    is_factor_of_data,
    is_limit,
    is_parameter,
    is_unchanged,
    is_untrained_head,
    learns_in_its_place,
    losses_of_others,
)
from tb_gradflow.analyse.edits.variables import tracked
from tb_gradflow.analyse.evidence.requests import is_by_keras, nobody_asked
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.comparisons import LINEAR
from tb_gradflow.analyse.graph.op_sets import OFFSETS, scopes_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import WEIGHT_NORM
from tb_gradflow.analyse.user_code.code import program_of
from tb_gradflow.analyse.user_code.definitions import are_built_before
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, place_of
from tb_gradflow.record.report import SEVERITIES
from tb_gradflow.record.schema import Trace


def rule(suspect: Suspect) -> Verdict | None:
    """Watched, trainable, on a differentiable path, but the model does not track it, so no gradient is requested for
    it. An error if the step creates it anew each time, and a warning for a layer's plain `tf.Variable`. Otherwise only
    information: a frozen network inside a loss looks the same, because Keras's `trainable` flag is not TensorFlow's.
    """
    variables = suspect.topology.trace.variables
    variable = variables[suspect.state.variable]
    listed = any(each.tracked and not each.computed for each in variables)
    if variable.tracked or not listed or not nobody_asked(suspect):
        return None
    verdicts = list(_situations(suspect))
    severity = min((each.severity for each in verdicts), key=SEVERITIES.index)
    # A variable in which the step stores values computed from others is state.
    is_state = suspect.state.variable in suspect.topology.written
    return replace(verdicts[0], severity="info" if is_state else severity)


def _situations(suspect: Suspect) -> Iterator[Verdict]:
    """All that the step shows of how the variable came to be left out; the first is reported."""
    topology, place = suspect.topology, suspect.state.variable
    trace = topology.trace
    if module := _module_without(suspect):
        yield _warning(
            "{they_are} used in the loss, but not in the list that the gradient is requested for{line}, so nothing "
            f"trains {{them}}: `{module}` is a `tf.Module`, whose `trainable_variables` collects each `tf.Variable`, "
            "but neither variables nor layers of Keras.",
            "Add {them} to the list for `tape.gradient(...)` and for the optimizer, those of a layer with "
            f"`layer.trainable_variables`; or use Keras alone: `class {module}(keras.layers.Layer)`, with "
            f"`self.add_weight(...)` for each variable. {_NOT_TRAINED}",
        )
    if trace.variables[place].made:
        yield Verdict("untracked_variable", "error", text=_created_anew)
    if is_plain_of_a_layer(suspect):
        untracked = (
            f"{_USED}{_place_of_use(suspect)}, but the model does not track {{them}}, so nothing trains {{them}}"
        )
        if owner := _class_without_layer(trace, _users(suspect)):
            yield _warning(
                f"{untracked}: Keras 3 tracks the weights of layers, and `{owner}` is not a layer.",
                f"Make it one, `class {owner}(keras.layers.Layer)`, and create {{them}} in it with "
                f"`self.add_weight(...)`; or {_MARK}",
            )
        yield _warning(
            f"{untracked}: Keras 3 tracks weights created with `self.add_weight(...)`, not a plain `tf.Variable`.",
            'Create {them} with `add_weight`, `self.{variable} = self.add_weight(name="{variable}", shape=...)`; or '
            + _MARK,
        )
    if around := _lambda_around(suspect):
        yield (_warning if _has_first_values(suspect) else _info)(
            f"{_NOT_REQUESTED}: Keras does not track the weights used in a `Lambda` layer, such as `{around}`.",
            "Call the layer itself instead of the `Lambda`, `x = {attribute}(x)`, or write a layer that holds it. "
            + _NOT_TRAINED,
        )
    if trained := learns_in_its_place(suspect):
        yield _warning(
            f"{_USED}, but a gradient is requested for the variables of `{trained}` instead. By the names, it should "
            "be the other way round.",
            f"Pass {{them}} to `tape.gradient(...)` and to the optimizer, and not those of `{trained}`. If the names "
            "say something else, set `trainable = False`.",
        )
    if losses := losses_of_others(suspect):
        names = " and ".join(f"`{trace.targets[each].name}`" for each in losses)
        yield _warning(
            f"{_USED}es {names}, but the gradient of each of these is requested for the same other variables, and no "
            "recorded step has changed {them}.",
            "Request the gradient of the loss that should train {them} for {them}, and pass it to {their} optimizer. "
            + _FIRST_VALUES,
        )
    if is_untrained_head(suspect):
        yield _warning(
            f"{_USED}, behind layers that are trained, but no gradient is requested for {{them}}, and no recorded step "
            "has changed {them}.",
            f"{_PASS} as well. {_FIRST_VALUES}",
        )
    if "/" in trace.variables[place].name:
        yield Verdict("untracked_variable", "info", text=_of_another_network)
    if (kernel := kernel_beside(suspect)) >= 0:
        yield _warning(
            f"{_NOT_REQUESTED}, so nothing trains {{them}}. A gradient is requested for "
            f"`{trace.variables[kernel].name}`, the kernel of the same layer.",
            f"{_PASS} as well; or {_MARK}",
        )
    if is_parameter(suspect):
        if is_by_keras(suspect):
            yield _warning(
                f"{_USED}, but the model does not track {{them}}, so `fit` trains {{them}} no more than any other "
                "constant, and no recorded step has changed {them}.",
                "Let the model hold {them}: `self.{variable} = self.add_weight(...)` in a layer or in the model, whose "
                f"`train_step` or `add_loss` then computes this loss. {_CONSTANT}",
            )
        yield _warning(f"{_NOT_REQUESTED}, and no recorded step has changed {{them}}.", f"{_PASS} as well. {_CONSTANT}")
    yield _info(f"{_NOT_REQUESTED}.", f"{_IF_NOT}.")


def _of_another_network(group: Group) -> Text:
    still = all(is_unchanged(group.suspect, each) for each in group.variables)
    held = "; a Keras model tracks the layers that it holds as attributes, `self.{attribute} = ...`"
    return Template(
        f"{_NOT_REQUESTED}, as for a teacher, a target network or a network inside a loss"
        + (", and no recorded step has changed {them}." if still else "."),
        _IF_NOT + (f"{held}." if is_by_keras(group.suspect) else "."),
    )(group)


def _info(message: str, fix: str) -> Verdict:
    return Verdict("untracked_variable", "info", text=Template(message, fix))


def _warning(message: str, fix: str) -> Verdict:
    return replace(_info(message, fix), severity="warning")


_USED = "{they_are} used in the loss"
_NOT_REQUESTED = f"{_USED}, but no gradient is requested for {{them}}"
_PASS = "Pass {them} to `tape.gradient(...)` and to the optimizer"
_IF_NOT = f"Nothing to fix if {{names}} should not be trained. Otherwise, p{_PASS[1:]}"
_MARK = "mark {them} as not trainable, `tf.Variable(..., trainable=False)`."
_CONSTANT = f"Nothing to fix if {{names}} should be constant: then {_MARK}"
_NOT_TRAINED = "Nothing to fix if {names} should not be trained: then set `trainable = False`."
_FIRST_VALUES = "Nothing to fix if {names} should keep {their} initial values: then set `trainable = False`."


def kernel_beside(suspect: Suspect) -> int:
    """The variable to whose product the suspect's is added, if a gradient is requested for it: the kernel of the same
    layer, so the suspect does not belong to a separate network such as a teacher. -1 if there is none."""
    topology, target = suspect.topology, suspect.target
    if target < 0:
        return -1
    ops = topology.trace.ops
    entries = [each for each in topology.trace.variable_gradients if each.target == target]
    asked = {each.variable for each in entries if each.outcome == "value"}
    for reader in topology.readers[suspect.state.variable]:
        for user in topology.onward(reader):
            if ops[user].type not in OFFSETS:
                continue
            products = [edge.op for edge in ops[user].inputs if edge.op >= 0 and ops[edge.op].type in KERNELS]
            factors = {edge.op for product in products for edge in ops[product].inputs}
            read = [number for number, readers in enumerate(topology.readers) if not factors.isdisjoint(readers)]
            # An input that is trained is multiplied by a kernel that is not, as the suspect is not.
            if read and asked.issuperset(read):
                return read[0]
    return -1


def is_plain_of_a_layer(suspect: Suspect) -> bool:
    """Whether a Keras layer, or the `train_step` of a model, computes with a plain `tf.Variable`. Keras 3 does not
    track it, even if an attribute holds it. Without a scope in its name it is none of Keras's own; older logs do not
    know more."""
    trace, place = suspect.topology.trace, suspect.state.variable
    variable = trace.variables[place]
    if ("/" in variable.name and not variable.plain) or suspect.measured.moved(place):
        return False
    layers = {layer.scope for layer in trace.layers}
    named = any(each.tracked and "/" in each.name for each in trace.variables)
    readers = suspect.topology.readers[place]
    if all(layers.intersection(scopes_of(trace.ops[op].name)) for op in readers):
        return named and bool(readers)
    if not named or not variable.plain or not is_unchanged(suspect, place):
        return False
    return _bends(suspect) and not is_limit(suspect) and not is_factor_of_data(suspect)


def _bends(suspect: Suspect) -> bool:
    """Whether the loss depends on a variable in another way than in proportion, as on the weight of a term: to train
    that would make no sense."""
    topology, ops = suspect.topology, suspect.topology.trace.ops
    hops = topology.influence(suspect.target).hops if suspect.target >= 0 else ()

    def onward(op: int) -> list[int]:
        return [each for each in topology.onward(op) if hops and hops[each] >= 0]

    readers = topology.readers[suspect.state.variable]
    return any(ops[op].type not in LINEAR and ops[op].reads is None for op in walked(readers, onward))


def _created_anew(group: Group) -> Text:
    layer = group.names[0].rpartition("/")[0].rpartition("/")[2]
    used = _USED + _place_of_use(group.suspect)
    if layer.isidentifier() and are_built_before(group.trace, group.names):
        owner = _class_without_layer(group.trace, _users(group.suspect))
        why = f": Keras tracks the layers that layers and models hold, and `{owner}` is neither" if owner else ""
        return Template(
            f"{used}, but the model does not track {{them}}, so nothing trains {{them}}{why}.",
            f"Make it a layer: `class {owner}(keras.layers.Layer)`, with `super().__init__()` in its `__init__`, and "
            "`call` instead of `__call__`."
            if owner
            else f"Hold the layer in an attribute of the model, `self.{layer} = ...`, and call `self.{layer}(x)`.",
        )(group)
    if layer.isidentifier():
        fix = f"Create the layer in `__init__`, `self.{layer} = ...`, and only call it in `call`: `self.{layer}(x)`."
    else:
        fix = 'Create it in `build`, not in `call`: `self.{variable} = self.add_weight(name="{variable}", shape=...)`.'
    return Template(f"{used}, but the step creates {{them}} anew each time, so nothing trains {{them}}.", fix)(group)


def _users(suspect: Suspect) -> list[int]:
    topology = suspect.topology
    return [op for reader in topology.readers[suspect.state.variable] for op in topology.onward(reader)]


def _place_of_use(suspect: Suspect) -> str:
    users = _users(suspect)
    return place_of(suspect.topology.trace, users[0]) if users else ""


def _module_without(suspect: Suspect) -> str:
    """The `tf.Module` in whose code a variable is used, if a gradient is requested for all that its
    `trainable_variables` lists, and that is not this one; empty if there is none."""
    topology, place, target = suspect.topology, suspect.state.variable, suspect.target
    request = topology.trace.targets[target].source if target >= 0 else None
    if request is None or not _lists_trainable(topology.trace, request):
        return ""

    def module_of(variable: int) -> str:
        return _class_without_layer(topology.trace, topology.readers[variable], ("tf.Module", "Module"))

    entries = topology.trace.variable_gradients
    asked = {each.variable for each in entries if each.target == target and each.outcome != "not_asked"}
    module = module_of(place)
    return module if module and any(module_of(each) == module for each in asked) else ""


def _lists_trainable(trace: Trace, source: int) -> bool:
    """Whether the function that requests a gradient reads `trainable_variables` of something."""
    line = trace.sources[source]
    request = program_of(trace).statement_at(line.file, line.line)
    if request is None:
        return "trainable_variables" in line.code
    code, statement = request
    around = code.callable(statement) or statement
    return any(isinstance(each, ast.Attribute) and each.attr == "trainable_variables" for each in ast.walk(around))


def _class_without_layer(
    trace: Trace, users: Sequence[int], bases: Sequence[str] = ("object", "tf.Module", "Module")
) -> str:
    """The class in whose code variables are used, if it has no other base classes than these; empty if it may be a
    layer, or is not known."""
    number = next((number for op in users if (number := trace.ops[op].source) is not None), None)
    if number is None:
        return ""
    source = trace.sources[number]
    use = program_of(trace).statement_at(source.file, source.line)
    if use is None:
        return ""
    code, statement = use
    owner = code.owner(statement)
    found = [ast.unparse(each) for each in owner.bases] if owner is not None else []
    is_plain = all(each in bases for each in found) and (bool(found) or "object" in bases)
    return owner.name if owner is not None and is_plain and not owner.keywords else ""


def _lambda_around(suspect: Suspect) -> str:
    """The `Lambda` layer that reads the variable; empty if none does."""
    lambdas = {layer.scope: layer.name for layer in suspect.topology.trace.layers if layer.type == "Lambda"}
    readers = suspect.topology.readers[suspect.state.variable]
    scopes = [scope for reader in readers for scope in scopes_of(suspect.topology.trace.ops[reader].name)]
    return next((lambdas[scope] for scope in scopes if scope in lambdas), "")


def _has_first_values(suspect: Suspect) -> bool:
    """Whether a layer still has its first values: its offset is zero, and nothing has changed it. What was trained
    before may be used in a `Lambda` on purpose."""
    measured, variables = suspect.measured, suspect.topology.trace.variables
    if measured.variables is None:
        return False
    layer = variables[suspect.state.variable].name.rpartition("/")[0]
    own = [each for each, it in enumerate(variables) if it.trainable and it.name.rpartition("/")[0] == layer]
    is_zero = any(measured.variables[each, WEIGHT_NORM] == 0 and variables[each].name.endswith("bias") for each in own)
    return is_zero and (measured.alone or all(is_unchanged(suspect, each) for each in own))


CAUSE = Cause(
    name="untracked_variable",
    meaning="the model does not track it, so no gradient is requested for it",
    severity="info; warning for a plain `tf.Variable` of a layer or a model, for an offset next to a weight that is "
    "trained, and for what the recorded steps show never to change: a plain variable that is applied to each element "
    "of what is trained; layers behind those that are trained, with an offset that is still zero; or a network with "
    "such an offset in two losses whose gradients are both requested for the same other variables; for a layer in a "
    "`Lambda`, likewise; and for a student "
    "whose teacher is trained instead; error if the step creates it anew each time",
    fix="create it in `build`, or its layer in `__init__`",
    text=_created_anew,
    without_op="the step creates {them} anew each time",
    edits=(tracked,),
    told_at_once=True,
)
