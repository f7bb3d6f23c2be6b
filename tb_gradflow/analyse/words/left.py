"""Words for values that leave TensorFlow, or stand still since before the step."""

from __future__ import annotations

from tb_gradflow.analyse.causes.tape import is_plain_of_a_layer
from tb_gradflow.analyse.graph.op_sets import scopes_of
from tb_gradflow.analyse.words.fields import ZERO, Template, fields
from tb_gradflow.analyse.words.inside import put_into, stays_inside
from tb_gradflow.analyse.words.names import Group, Text, Writer, blamed, place_of
from tb_gradflow.record.schema import PYTHON


def python(group: Group) -> Text:
    if group.op is not None and group.op.type == PYTHON:
        return _escape(group)
    return _function(group)


def _function(group: Group) -> Text:
    """`tf.py_function` has a gradient function, so what its body loses arrives as zeros."""
    zero = group.op is not None and group.op.type == "EagerPyFunc"
    start = ZERO if zero else "{they_get} {size}: "
    return Template(
        start + "{op} leaves TensorFlow and computes in Python, where no derivative is known.",
        "Write the body with TensorFlow functions, `tf.tanh(x)` for `np.tanh(x)` and no `.numpy()`, or give it a "
        "gradient with `tf.custom_gradient`.",
    )(group)


def _escape(group: Group) -> Text:
    names = fields(group)
    what = "the value" if _is_read_there(group) else f"what is computed from {names['them']}"
    message = (
        f"{names['they_get']} no gradient: {what} leaves TensorFlow at {blamed(group)} and comes back as a number."
    )
    code = group.source.code if group.source is not None else ""
    if (put := put_into(code)) is not None:
        holder, value = put
        return Text(
            message,
            f"Collect the tensors in the place of an array: `parts.append({value})` for each of them, then "
            f"`tf.reshape(tf.stack(parts), {holder}.shape)`.",
        )
    inside = stays_inside(code) if code else None
    name, _, value = (inside or "").partition(" = ")
    if inside is not None and name == value:
        return Text(message, f"Leave this line out: `{name}` is a tensor already.")
    if inside is not None:
        return Text(message, f"Stay in TensorFlow: `{inside}`.")
    return Text(message, _ADVICE.get((group.op.api if group.op else None) or "", _STAY))


_STAY = (
    "Stay in TensorFlow: the tensor itself for `.numpy()` and `float(...)`, `tf.` functions for `np.` ones, "
    "`model(x, training=True)` for `model.predict(x)`; or give this part a gradient with `tf.custom_gradient`."
)
_ADVICE = {
    "int()": "Keep it a float, and blend what it chooses between: `w = x - tf.floor(x)`, then "
    "`1 - w` parts of what belongs to the whole number below, and `w` parts of what belongs to the next.",
}


def _is_read_there(group: Group) -> bool:
    """Whether what leaves is the variables' own value."""
    ops = group.trace.ops
    producer = group.suspect.producer
    return producer >= 0 and ops[producer].type in ("ReadVariableOp", "Identity")


def snapshot(group: Group) -> Text:
    names = fields(group)
    # What is known of one of them need not be so of the others.
    made_by = {group.trace.ops[culprit].api for culprit in (group.culprit, *group.culprits.values()) if culprit >= 0}
    api = made_by.pop() if len(made_by) == 1 else None
    how = f", by `{api}`" if api else ""
    place = place_of(group.trace, group.culprit)
    message = (
        f"{names['they_get']} no gradient: the tensor that is used here{place} was computed from {names['them']} once, "
        f"before the step{how}, and does not change with {names['them']}."
    )
    again = f"`{api}({names['variable']})`" if api and api.startswith("tf.") else "what is made of the variable"
    return Text(
        message,
        f"Keep the variable, not the tensor, and compute {again} inside the step: in `call`, or in the loss function, "
        "under the tape.",
    )


def rebound(group: Group) -> Text:
    names = fields(group)
    place = group.trace.variables[group.variables[0]].rebound or names["variable"]
    later = group.suspect.state.status == "connected"
    if group.trace.variables[group.variables[0]].computed:
        return Template(
            f"{{they_get}} no gradient: `{place}` was a variable and has been overwritten with a tensor, which no tape "
            "watches by itself.",
            f"Change the variable in place: `{place}.assign_sub(rate * gradient)`, not "
            f"`{place} = {place} - rate * gradient`.",
        )(group)
    message = (
        f"{names['they_are']} lost: the step puts a tensor into `{place}`, and from the next step on nothing trains it."
        if later
        else f"{names['they_get']} no gradient: `{place}` holds a tensor in the place of the variable, and a tensor is "
        "not trained."
    )
    return Text(
        message,
        f"Change the variable in place: `{place}.assign_sub(rate * gradient)` for "
        f"`{place} = {place} - rate * gradient`, or `optimizer.apply_gradients(...)`.",
    )


def untracked(group: Group) -> Text:
    made = group.trace.variables[group.variables[0]].made
    layer = group.names[0].rpartition("/")[0].rpartition("/")[2]
    if layer and not made and (around := _lambda_around(group)):
        return Template(
            "{they_take} part in the loss, and no gradient is asked for {them}: Keras does not look for weights in the "
            f"function of a `Lambda` layer, and `{around}` is one.",
            "Nothing to repair, if nothing is to train {them}. Else call the layer itself in the place of the "
            "`Lambda`, `x = {attribute}(x)`, or make a layer of your own that holds it.",
        )(group)
    if layer and not made:
        return Template(
            "{they_take} part in the loss, and no gradient is asked for {them}: so it is with a teacher, a target "
            "network and a network that a loss is made of.",
            "Nothing to repair, if nothing is to train {them}. Else give {them} to `tape.gradient(...)` and to the "
            "optimizer; a Keras model asks for the layers that it holds itself, `self.{attribute} = ...`.",
        )(group)
    if not made and is_plain_of_a_layer(group.suspect):
        topology = group.suspect.topology
        users = [op for reader in topology.readers[group.variables[0]] for op in topology.onward(reader)]
        where = place_of(group.trace, users[0]) if users else ""
        return Template(
            "{they_take} part in the loss" + where + ", and the model does not list {them}, so nobody trains {them}: "
            "Keras 3 lists what `self.add_weight(...)` makes, and no plain `tf.Variable`.",
            'Make it a weight of its layer, `self.{variable} = self.add_weight(name="{variable}", shape=...)`; or say '
            "that nothing is to train it, `tf.Variable(..., trainable=False)`.",
        )(group)
    if not made:
        return Template(
            "{they_take} part in the loss, and no gradient is asked for {them}.",
            "Nothing to repair, if nothing is to train {them}. Else give {them} to `tape.gradient(...)` and to the "
            "optimizer.",
        )(group)
    if layer.isidentifier():
        fix = f"Make the layer in `__init__`, `self.{layer} = ...`, and only call it in `call`: `self.{layer}(x)`."
    else:
        fix = 'Make it in `build`, not in `call`: `self.{variable} = self.add_weight(name="{variable}", shape=...)`.'
    why = "{they_take} part in the loss, and the step makes {them} anew each time, so nobody trains {them}."
    return Template(why, fix)(group)


def _lambda_around(group: Group) -> str:
    """The `Lambda` layer that reads the first variable; empty if none does."""
    lambdas = {layer.scope: layer.name for layer in group.trace.layers if layer.type == "Lambda"}
    readers = group.suspect.topology.readers[group.variables[0]]
    scopes = [scope for reader in readers for scope in scopes_of(group.trace.ops[reader].name)]
    return next((lambdas[scope] for scope in scopes if scope in lambdas), "")


WRITERS: dict[str, Writer] = {
    "untracked_variable": untracked,
    "python_escape": python,
    "python_snapshot": snapshot,
    "variable_rebound": rebound,
}
