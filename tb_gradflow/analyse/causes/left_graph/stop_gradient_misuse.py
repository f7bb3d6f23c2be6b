"""`tf.stop_gradient` is on every path."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.tapes import not_stopped
from tb_gradflow.analyse.evidence.discrete import ROUNDING
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.stopped import STOPS, keeps_value_alone
from tb_gradflow.analyse.words.code import sides_of
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text, api_of, call_of, network_of
from tb_gradflow.analyse.words.phrases import braces


def rule(suspect: Suspect) -> Verdict | None:
    """`tf.stop_gradient` on the only path. A straight-through estimator has another path, so it is no suspect."""
    return Verdict("stop_gradient_misuse", "error") if suspect.op.type in STOPS else None


def message_and_fix(group: Group) -> Text:
    """Some functions stop the gradient internally, and a functional model was built before the step."""
    quiet = ' If this is intended, pass `expected=["{pattern}"]` to the recorder.'
    if "stop_gradient" not in api_of(group) and group.source is not None and call_of(group) is not None:
        fix = "Use a function that does not, or write this part yourself."
        if "softmax_cross_entropy" in api_of(group):
            fix = "Use `tf.nn.softmax_cross_entropy_with_logits`, which also passes the gradient to its labels."
        return Template(SIZE + "{op} stops the gradient internally, and is on every path to the loss.", fix + quiet)(
            group
        )
    message = SIZE + "{op} is on every path to the loss."
    if (through := _straight_through(group)) is not None:
        alone = f": this line passes the gradient only to `{through[1]}`."
        return Template(message[:-1] + alone, _beside(group, *through) + quiet)(group)
    if call_of(group) is None:
        built = "Remove `stop_gradient` where the model is built."
        return Template(message, built + quiet)(group)
    if _weighs_another(group):
        return Template(
            message,
            "If `{x}` should only weight the other factor, as an advantage weights a policy, keep it and give {names} "
            "{their} own loss term, such as the mean of `{lib}.square(...)` of {their} error. Otherwise, use `{x}` "
            "without `stop_gradient`." + quiet,
        )(group)
    other = (
        " If you meant to freeze another network, stop the gradient of that one instead." if _is_network(group) else ""
    )
    return Template(message, "Remove {fn} and use `{x}` itself." + other + quiet)(group)


def _straight_through(group: Group) -> tuple[str, str] | None:
    """The user's `q` and `x` in `x + stop_gradient(q - x)`, which has the value of `q` and passes the gradient to `x`.
    None for any other use."""
    call = call_of(group)
    sides = sides_of(call.subject, "-") if call is not None else None
    if sides is None or not keeps_value_alone(group.suspect.topology, group.culprit):
        return None
    kept, passed = map(braces, sides)
    return kept, passed


def _beside(group: Group, kept: str, passed: str) -> str:
    """The fix for a variable that only the kept value depends on: apply scales outside of the rounding, give codes a
    loss."""
    if any(group.trace.ops[op].type in ROUNDING for op in group.others):
        return (
            "Apply it only to the rounding, `u + {lib}.stop_gradient({lib}.round(u) - u)`, and multiply and add "
            "afterwards."
        )
    return (
        "Give {names} a loss term computed from "
        f"`{kept}` before this line, as the codebook of a VQ-VAE has: the mean square of "
        f"`{kept} - {{lib}}.stop_gradient({passed})`."
    )


def _weighs_another(group: Group) -> bool:
    """Whether the stopped value is a factor of a value that trains other variables."""
    topology, target, ops = group.suspect.topology, group.suspect.target, group.trace.ops
    trained = {
        reader
        for place in range(len(group.trace.variables))
        if place not in group.variables and topology.receives(place, target)
        for reader in topology.readers[place]
    }

    def in_shape(op: int) -> list[int]:
        return [user for user in topology.onward(op) if ops[user].type in _IN_SHAPE]

    for op in walked([group.culprit], in_shape):
        for product in (user for user in topology.onward(op) if ops[user].type == "Mul"):
            others = [edge.op for edge in ops[product].inputs if edge.op >= 0 and edge.op != op]
            if any(not (topology.made_by(other) | {other}).isdisjoint(trained) for other in others):
                return True
    return False


# These turn an advantage into another advantage.
_IN_SHAPE = frozenset({"Identity", "Reshape", "Squeeze", "ExpandDims", "Cast", "Neg", "RealDiv", "Sub"})


def _is_network(group: Group) -> bool:
    """Whether a whole network of several layers gets no gradient, while the same loss trains another one."""
    networks = {network_of(name) for name in group.names}
    if len(networks) != 1 or "" in networks or len({name.rpartition("/")[0] for name in group.names}) < 2:
        return False
    topology, target = group.suspect.topology, group.suspect.target
    rest = [place for place in range(len(group.trace.variables)) if place not in group.variables]
    trained = [place for place in rest if topology.receives(place, target)]
    others = {network_of(group.trace.variables[place].name) for place in trained}
    return bool(others - {""}) and networks.isdisjoint(others)


CAUSE = Cause(
    name="stop_gradient_misuse",
    meaning="`tf.stop_gradient` is on every path",
    severity="error",
    fix="remove it, or list the variable in `expected`",
    text=message_and_fix,
    verb="blocks it",
    edits=(not_stopped,),
)
