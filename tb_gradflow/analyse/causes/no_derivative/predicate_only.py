"""A comparison or an index only chooses a branch, or only ends a loop."""

from __future__ import annotations

import ast
from dataclasses import replace

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.soft import soft_branch
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict, discrete_part
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.words.code import call_on
from tb_gradflow.analyse.words.fields import SIZE, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, source_of
from tb_gradflow.analyse.words.soft import blend, soft_step
from tb_gradflow.record.python import expression_of

_CONDITION_OF = {
    "If": 0,
    "StatelessIf": 0,
    "Case": 0,
    "StatelessCase": 0,
    "While": 1,
    "StatelessWhile": 1,
    "Merge": 2,
    "Switch": 1,
    "RefSwitch": 1,
    "LoopCond": 0,
}


def rule(suspect: Suspect) -> Verdict | None:
    """What only chooses the branch of a `tf.cond` or a `tf.switch_case`, or ends a `tf.while_loop`."""
    uses = discrete_part(suspect).uses
    chooses = uses and all(_CONDITION_OF.get(suspect.type_of(use.consumer)) == use.input for use in uses)
    return Verdict("predicate_only", "error") if chooses else None


_BRANCHES = ("If", "StatelessIf")


def message_and_fix(group: Group) -> Text:
    compared = next((op for op in discrete_part(group.suspect).ops if group.suspect.type_of(op) in _COMPARING), -1)
    message = "{op} compares {them}, and the result" if compared == group.culprit else "the result of {op}"
    message += (
        f" is only used to {'end a loop' if _ends_a_loop(group) else 'select a branch'}, which has no derivative."
    )
    fix = _blended(group, compared) if compared >= 0 else _weighed(group)
    return Text(filled(SIZE + message, fields(group)), fix)


def _blended(group: Group, compared: int) -> str:
    step, blend = soft_step(replace(group, culprit=compared)), _blended_branches(group)
    if _ends_a_loop(group):
        return (
            f"Run a fixed number of iterations and blend in each: `gate = {step}`, then `gate * new + (1 - gate) * "
            "old`; or use it inside the loop body, as an end time is used in the step size: `dt = end / steps`."
        )
    if blend:
        return f"Blend both branches: `gate = {step}`, then `{blend}`."
    return (
        f"Compute both branches and blend the results: `gate = {step}`, then `gate * true_branch + (1 - gate) * "
        "false_branch`."
    )


def _weighed(group: Group) -> str:
    """The fix where nothing is compared: a number, or the position of the largest one, is the index of a branch."""
    if not all(group.suspect.type_of(use.consumer) in _INDEXED for use in discrete_part(group.suspect).uses):
        new, old = ("new", "old") if _ends_a_loop(group) else ("true_branch", "false_branch")
        return f"Compute a weight between 0 and 1 instead, and blend with it: `gate * {new} + (1 - gate) * {old}`."
    x, kind = fields(group)["bx"], group.op.type if group.op is not None else ""
    scores = {"ArgMax": x, "Multinomial": f"{x}[0]", "ArgMin": f"-{x}"}.get(kind)
    near = f"-tf.square({x} - tf.range(len(branches), dtype=tf.float32)) / 0.1"
    return (
        "Compute all branches and add up the results, each with a weight: `weights = tf.nn.softmax("
        f"{scores or near})`, then `tf.add_n([weights[i] * branch() for i, branch in enumerate(branches)])`."
    )


_COMPARING = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual")

_INDEXED = ("Case", "StatelessCase")


def _ends_a_loop(group: Group) -> bool:
    uses = discrete_part(group.suspect).uses
    return bool(uses) and all(group.suspect.type_of(use.consumer) in LOOPS | {"LoopCond"} for use in uses)


def _blended_branches(group: Group) -> str:
    """A blend of the results of the branches of the user's `tf.cond`; empty if the line does not show them."""
    uses = [use for use in discrete_part(group.suspect).uses if group.suspect.type_of(use.consumer) in _BRANCHES]
    source = source_of(group.trace, uses[0].consumer) if len({use.consumer for use in uses}) == 1 else None
    if source is None:
        return ""
    call = call_on(source.code, "tf.cond")
    given = [call.argument(1, "true_fn"), call.argument(2, "false_fn")] if call is not None else []
    sides = [_computed(each) for each in given if each is not None]
    return blend(*sides) if len(sides) == 2 and all(sides) else ""


def _computed(function: str) -> str:
    """The result of calling a branch, as code: the body of a lambda without arguments, the call of a name; otherwise
    empty."""
    try:
        node = expression_of(function)
    except SyntaxError:
        return ""
    if isinstance(node, ast.Lambda):
        return "" if node.args.args else ast.unparse(node.body)
    return f"{function}()" if isinstance(node, (ast.Name, ast.Attribute)) else ""


CAUSE = Cause(
    name="predicate_only",
    meaning="a comparison or an index that only selects the branch of an If or a Case, or ends a While",
    severity="error",
    fix="blend both branches",
    text=message_and_fix,
    edits=(soft_branch,),
)
