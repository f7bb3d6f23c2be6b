"""The value leaves TensorFlow for Python or NumPy."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.left_tensorflow import inside, numpy_function_of
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import is_of_a_dataset
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.user_code.inside import put_into, stays_inside
from tb_gradflow.analyse.words.fields import ZERO, Template, fields
from tb_gradflow.analyse.words.names import Group, Text, blamed
from tb_gradflow.record.schema import PYTHON, Op

# `tf.py_function` has a gradient function: a gradient lost in its body arrives as zeros.
_FUNCTIONS = ("PyFunc", "PyFuncStateless")

_PYTHON = frozenset({*_FUNCTIONS, "EagerPyFunc", PYTHON})


def rule(suspect: Suspect) -> Verdict | None:
    """Python code computes the value: `tf.numpy_function`, `tf.py_function` with NumPy in it, or `.numpy()` and its
    like in a step that runs eagerly. Not if it is only given integers, such as the action that was drawn: what made
    them integers has no derivative either."""
    if suspect.op.type not in _PYTHON or _is_given_integers(suspect.topology, suspect.culprit):
        return None
    return Verdict("python_escape", "error")


def _is_given_integers(topology: Topology, op: int) -> bool:
    """Whether it is a function of Python's that is given integers alone, of what is computed in the step."""
    ops = topology.trace.ops
    given = [ops[edge.op].outputs[edge.output].dtype for edge in ops[op].inputs if edge.op >= 0]
    return ops[op].type in _FUNCTIONS and bool(given) and all(each.startswith(("int", "uint")) for each in given)


def handed_to_predict(suspect: Suspect) -> Verdict | None:
    """A method of Keras, such as `predict`, puts the value into a dataset of its own, which no line of the user's code
    makes, and returns plain numbers."""
    if not is_of_a_dataset(suspect.op) or suspect.op.source is not None:
        return None
    topology = suspect.topology
    out = [op for op in topology.by_type.get(PYTHON, ()) if suspect.culprit in topology.made_by(op)]
    return Verdict("python_escape", "error", min(out)) if out else None


def computed_outside(suspect: Suspect) -> Verdict | None:
    """The loss depends on nothing that is computed from the variable but what leaves TensorFlow: a NumPy function takes
    the value; or Python does, and no op of the step computes the loss. What they return are plain numbers, and where
    they are used is not known."""
    if suspect.culprit < 0 or suspect.op.type != PYTHON:
        return None
    is_given = suspect.target >= 0 and suspect.topology.trace.targets[suspect.target].op < 0
    return Verdict("python_escape", "error") if is_given or _is_of_numpy(suspect.op) else None


def _is_of_numpy(op: Op) -> bool:
    return (op.api or "").startswith(("np.", "numpy."))


def partly_in_python(suspect: Suspect) -> Verdict | None:
    """Only part of the gradient arrives: the value also goes through Python on the path to the loss, which gets a
    gradient and propagates none. Information: for a number that scales the rest, or a target, this may be intended. A
    warning for what is only added to the loss, where a constant has no purpose."""
    if suspect.target < 0:
        return None
    topology, readers = suspect.topology, suspect.topology.readers[suspect.state.variable]
    arrives = topology.gradient(suspect.target).hops
    for op in sorted(place for kind in (*_FUNCTIONS, PYTHON) for place in topology.by_type.get(kind, ())):
        given = {edge.op for edge in topology.trace.ops[op].inputs if edge.op >= 0}
        made = given.union(*(topology.made_by(each) for each in given)) if arrives[op] >= 0 else given
        if arrives[op] >= 0 and not made.isdisjoint(readers) and not _is_given_integers(topology, op):
            return Verdict("python_escape", "warning" if _is_summand(suspect, op) else "info", op)
    return None


def _is_summand(suspect: Suspect, op: int) -> bool:
    """Whether everything that is computed from an op on the way to the loss is only scaled and added up there."""
    topology = suspect.topology
    ops, leads = topology.trace.ops, topology.influence(suspect.target).hops
    onward = walked([op], lambda at: [each for each in topology.onward(at) if leads[each] >= 0])
    return all(at == op or ops[at].type in _ADDING or _scales(topology, at) for at in onward)


def _scales(topology: Topology, op: int) -> bool:
    inputs = [edge.op for edge in topology.trace.ops[op].inputs if edge.op >= 0]
    return topology.trace.ops[op].type in ("Mul", "RealDiv") and sum(topology.of_variables[each] for each in inputs) < 2


_ADDING = frozenset({"AddV2", "Add", "AddN", "Sub", "Neg", "Sum", "Mean", "Identity", "Cast", "Reshape", "Pack"})


def message_and_fix(group: Group) -> Text:
    if group.op is None or group.op.type != PYTHON:
        return _function(group)
    text = _escape(group)
    if group.verdict.severity == "warning":
        return Text(f"{text.message} Added to the loss, it trains nothing.", text.fix)
    if group.verdict.severity == "info":
        otherwise = text.fix[:1].lower() + text.fix[1:]
        return Text(text.message, f"Nothing to fix if this part is a constant on purpose. Otherwise, {otherwise}")
    return text


def _function(group: Group) -> Text:
    """`tf.py_function` has a gradient function, so a gradient lost in its body arrives as zeros."""
    zero = group.op is not None and group.op.type == "EagerPyFunc"
    start = ZERO if zero else "{they_get} {size}: "
    return Template(
        start + "{op} runs Python code, which TensorFlow cannot differentiate.",
        "Write the body with TensorFlow functions, `tf.tanh(x)` instead of `np.tanh(x)` and no `.numpy()`, or give it "
        "a gradient with `tf.custom_gradient`.",
    )(group)


def _escape(group: Group) -> Text:
    names = fields(group)
    what = "the value" if _is_read_there(group) else f"a value computed from {names['them']}"
    is_back = group.suspect.state.status != "unused"
    rest = " and comes back as a constant." if is_back else f". {_whose(group)} plain numbers, which carry no gradient."
    message = f"{names['they_get']} {_what_is_left(group)}: {what} leaves TensorFlow at {blamed(group)}{rest}"
    code = group.source.code if group.source is not None else ""
    if (put := put_into(code)) is not None:
        holder, value = put
        return Text(
            message,
            f"Collect the tensors in a list instead of an array: `parts.append({value})` for each of them, then "
            f"`tf.reshape(tf.stack(parts), {holder}.shape)`.",
        )
    inside = stays_inside(code) if code else None
    name, _, value = (inside or "").partition(" = ")
    if inside is not None and name == value:
        return Text(message, f"Remove this line: `{name}` is already a tensor.")
    if inside is not None and (function := numpy_function_of(group)):
        return Text(message, f"Write `{function}` with TensorFlow functions instead of NumPy's, then `{inside}`.")
    if inside is not None:
        return Text(message, f"Stay in TensorFlow: `{inside}`.{_up_to_the_loss(group)}")
    return Text(message, _ADVICE.get((group.op.api if group.op else None) or "", _STAY))


def _up_to_the_loss(group: Group) -> str:
    """What else to change if no op of the step computes the loss."""
    target = group.suspect.target
    if target < 0 or group.trace.targets[target].op >= 0:
        return ""
    return " Compute what follows from it, up to the loss, with TensorFlow functions as well: NumPy's return numbers."


def _whose(group: Group) -> str:
    return "NumPy returns" if group.op is not None and _is_of_numpy(group.op) else "What Python computes are"


def _what_is_left(group: Group) -> str:
    """What the variables get: part of the gradient, if another path stays in TensorFlow."""
    partly = [state.status == "connected" for state in group.states]
    if all(partly):
        return "an incomplete gradient"
    return "no gradient, or an incomplete one" if any(partly) else "no gradient"


_STAY = (
    "Stay in TensorFlow: use the tensor itself instead of `.numpy()` or `float(...)`, `tf.` functions instead of `np.` "
    "ones, and `model(x, training=True)` instead of `model.predict(x)`; or give this part a gradient with "
    "`tf.custom_gradient`."
)

_ADVICE = {
    "int()": "Keep it a float and interpolate: `w = x - tf.floor(x)`, then `(1 - w) * low + w * high`, where `low` and "
    "`high` belong to the integers below and above `x`.",
    "np.random.normal": "Draw the noise without the parameters, then shift and scale it with TensorFlow: `mean + "
    "deviation * tf.random.normal(tf.shape(mean))`.",
}


def _is_read_there(group: Group) -> bool:
    """Whether the value that leaves TensorFlow is that of the variables themselves."""
    ops = group.trace.ops
    producer = group.suspect.producer
    return producer >= 0 and ops[producer].type in ("ReadVariableOp", "Identity")


CAUSE = Cause(
    name="python_escape",
    meaning="a `tf.numpy_function`; a `tf.py_function` whose gradient comes back as zeros; in a step that runs "
    "eagerly, `.numpy()`, `float()`, NumPy functions, `predict` and the like, whose result comes back as a constant "
    "or decides what Python does; or a `tf.numpy_function` next to other paths, which gets a gradient and propagates "
    "none",
    severity="error; info if there are other paths, a warning for what is only added to the loss",
    fix="the same line in TensorFlow",
    text=message_and_fix,
    plight="an incomplete gradient",
    verb="blocks it",
    edits=(inside,),
)
