"""The value is assigned to a variable, and the loss reads it from there."""

from __future__ import annotations

import ast
import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.variables import beside_a_metric, collected, kept_beside
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.code import Call, bracketed, call_on
from tb_gradflow.analyse.words.fields import SIZE, fields, filled
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.python import expression_of

_WRITING = (
    *("Assign", "ResourceStridedSliceAssign", "ResourceScatter", "StridedSliceAssign"),
    *("ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub"),
)


def rule(suspect: Suspect) -> Verdict | None:
    """The value is stored in a `tf.Variable`, or in a metric, and read back: a tape does not follow values through
    variables."""
    written = suspect.op.writes is not None or suspect.op.type.startswith(_WRITING)
    stored = written or any(edge.passes == "state" for edge in suspect.edges)
    return Verdict("variable_assign", "error") if stored else None


def kept_as_state(suspect: Suspect) -> Verdict | None:
    """The loss depends on no variable, and this one's path ends in an assignment: the loss is read from state, for
    example the result of a metric, whose variables are not in the trace.
    """
    stored = suspect.culprit >= 0 and suspect.op.type.startswith("Assign")
    detached = suspect.target >= 0 and suspect.topology.trace.targets[suspect.target].op < 0
    return Verdict("variable_assign", "error") if stored and detached else None


def behind_custom_gradient(suspect: Suspect) -> Verdict | None:
    """The value is assigned to a weight that the loss reads, and a custom gradient that was to bring the gradient back
    gives zeros. A scale or an average that the custom gradient uses is no weight, or is computed from its old value."""
    topology, target = suspect.topology, suspect.target
    if target < 0 or all(check.op != suspect.culprit for check in topology.trace.gradient_checks):
        return None
    influence, readers = topology.influence(target).hops, topology.readers[suspect.state.variable]
    for place, op in enumerate(topology.trace.ops):
        if op.writes is None or influence[place] < 0 or not topology.trace.variables[op.writes].trainable:
            continue
        made = topology.made_by(place)
        if not made.isdisjoint(readers) and made.isdisjoint(topology.readers[op.writes]):
            return Verdict("variable_assign", "error", place)
    return None


_STORING = ("assign", "assign_add", "assign_sub")


def message_and_fix(group: Group) -> Text:
    why = "{op} stores the value in a variable that is then read back, and no gradient passes through an assignment."
    return Text(filled(SIZE + why, fields(group)), _fix(group))


def _fix(group: Group) -> str:
    if copy := _copy_of(group):
        return (
            f"`{copy}` is a copy of other weights and propagates no gradient to them. Compute the loss with the "
            f"weights that you want to train, and use the copy only for fixed targets, such as the output of a teacher."
        )
    code = group.source.code if group.source is not None else ""
    call = next((call for name in _STORING if (call := call_on(code, name)) is not None), None)
    if call_on(code, "update_state") is not None or (call is None and _is_averaged(group)):
        return (
            "A metric does not propagate gradients. Compute the loss from the tensors themselves, for example with a "
            "function from `keras.losses`, and update the metric separately."
        )
    if (scattered := _scattered(code)) is not None:
        return scattered
    holder, places = _holder(call) if call is not None else ("", 0)
    if call is None or not holder:
        return "Compute with the tensor itself, and store it afterwards: `y = f(value)`, then `state.assign(value)`."
    if places:
        whole = "tf.stack(parts)" if places == 1 else f"tf.reshape(tf.stack(parts), {holder}.shape)"
        return (
            f"Collect the tensors: `parts.append({call.subject})` for each of them (in a loop over `tf.range`, use a "
            f"`tf.TensorArray`), then use `{whole}` instead of `{holder}`; or compute all of them at once."
        )
    value = _value(call, holder)
    if group.op is not None and "/while/" in f"/{group.op.name}":
        again = re.sub(rf"(?<![\w.]){re.escape(holder)}(?!\w)", "value", value)
        return (
            f"Carry the tensor itself through the loop: start with `value = tf.identity({holder})`, set `value = "
            f"{again}` in each iteration, and store it after the loop, `{holder}.assign(value)`."
        )
    if (
        group.op is not None
        and group.op.writes is not None
        and "/" in group.trace.variables[group.op.writes].name
        and group.trace.variables[group.op.writes].trainable
        and not holder.startswith("self.")
    ):
        return (
            f"Call the layer or model with these values instead of assigning them: in Keras 3, `y, _ = "
            f"model.stateless_call(values, model.non_trainable_variables, x)`, where `values` lists `{value}` and the "
            "others."
        )
    if value != call.subject:
        again = re.sub(rf"(?<![\w.]){re.escape(holder)}(?!\w)", "value", value, count=1)
        return (
            f"Add up a tensor instead of `{holder}`: start with `value = tf.identity({holder})`, set `value = {again}` "
            f"each time, and store it at the end: `{holder}.assign(value)`."
        )
    return (
        f"Compute with the tensor itself, `value = {value}`, instead of `{holder}`, and store it afterwards: "
        f"`{holder}.assign(value)`."
    )


def _scattered(code: str) -> str | None:
    """How to write to positions in a tensor what the user's line writes to positions in a variable; None if it does
    not."""
    for kind in ("update", "add", "sub"):
        call = call_on(code, f"scatter_nd_{kind}")
        if call is None:
            continue
        holder, _ = _holder(call)
        indices, updates = call.argument(0, "indices"), call.argument(1, "updates")
        if holder and indices and updates:
            return (
                f"Compute with a tensor, `value = tf.tensor_scatter_nd_{kind}({holder}, {indices}, {updates})`, "
                f"instead of `{holder}`, and store it afterwards: `{holder}.assign(value)`."
            )
    return None


def _copy_of(group: Group) -> str:
    """The network whose weights are copied from those that get no gradient, or averaged with them; empty if there is
    none. Weights correspond by name, and data plays no part."""
    op, trace = group.op, group.trace
    if op is None or op.writes is None or op.data:
        return ""
    written = trace.variables[op.writes].name
    owner, _, own = written.rpartition("/")
    same = owner and any(name.rpartition("/")[2] == own and name != written for name in group.names)
    return owner.partition("/")[0] if same else ""


def _is_averaged(group: Group) -> bool:
    """Whether the stored value is read back and divided by a count that may be zero, as when a metric is called: `loss
    = metric(y, p)`."""
    consumers, ops = group.suspect.topology.consumers, group.trace.ops
    read = [op for op, _ in consumers[group.culprit] if ops[op].type == "ReadVariableOp"] if group.culprit >= 0 else []
    return any(ops[user].type == "DivNoNan" for op in read for user, _ in consumers[op])


def _holder(call: Call) -> tuple[str, int]:
    """The variable in which the value is stored, and the number of indices that address a part of it, 0 for the whole;
    empty for a function that gets both as arguments."""
    node = expression_of(call.head)
    if not isinstance(node, ast.Attribute) or call.head.startswith(("tf.", "state_ops.")):
        return "", 0
    if isinstance(node.value, ast.Subscript):
        given = node.value.slice.elts if isinstance(node.value.slice, ast.Tuple) else [node.value.slice]
        return ast.unparse(node.value.value), sum(not isinstance(each, ast.Slice) for each in given) or 1
    return ast.unparse(node.value), 0


def _value(call: Call, holder: str) -> str:
    """The value of the variable afterwards."""
    sign = {"assign_add": "+", "assign_sub": "-"}.get(call.head.rpartition(".")[2])
    return f"{holder} {sign} {bracketed(call.subject)}" if sign else call.subject


CAUSE = Cause(
    name="variable_assign",
    meaning="the value is assigned to a variable that is then read; or the loss depends on no variable and the path "
    "ends in an assignment (the result of a metric)",
    severity="error",
    fix="compute with the tensor, assign afterwards",
    text=message_and_fix,
    edits=(kept_beside, beside_a_metric, collected),
)
