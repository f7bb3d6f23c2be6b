"""A value is only compared, and a comparison has no derivative."""

from __future__ import annotations

import ast

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.soft import soft_comparison
from tb_gradflow.analyse.evidence.discrete import COMPARISON, handed_on
from tb_gradflow.analyse.evidence.suspects import Discrete, Suspect, Verdict, discrete_part
from tb_gradflow.analyse.graph.op_sets import CHOICES, is_float
from tb_gradflow.analyse.words.chosen_side import who_gets_it
from tb_gradflow.analyse.words.code import Call, call_around, call_on
from tb_gradflow.analyse.words.fields import SIZE, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, call_of, called, namespace, source_of
from tb_gradflow.analyse.words.phrases import braces
from tb_gradflow.analyse.words.soft import EQUAL, blend, both_conditions, is_sequence_mask, is_zero_written, soft_step
from tb_gradflow.record.python import module_of


def rule(suspect: Suspect) -> Verdict | None:
    """A comparison, or integers or positions that are computed only for one (`tf.sequence_mask`)."""
    if suspect.op.type in COMPARISON:
        return Verdict("nondiff_comparison", "error")
    part = discrete_part(suspect)
    compared = -1 if _is_computed_with(suspect, part) else _first(suspect, part, COMPARISON)
    integers = bool(suspect.op.outputs) and not any(is_float(tensor.dtype) for tensor in suspect.op.outputs)
    prepares = suspect.op.type == "Range" or (integers and suspect.op.type in ("Cast", "Max", "Min"))
    return Verdict("nondiff_comparison", "error", compared) if prepares and compared >= 0 else None


def _is_computed_with(suspect: Suspect, part: Discrete) -> bool:
    """Whether the value itself, and not only the result of its comparison, is converted to a float again."""
    handed = handed_on(suspect, part)
    return any(use.via in handed and suspect.type_of(use.consumer) == "Cast" for use in part.uses)


def _first(suspect: Suspect, part: Discrete, types: frozenset[str]) -> int:
    return next((op for op in part.ops if suspect.type_of(op) in types), -1)


def message_and_fix(group: Group) -> Text:
    names = fields(group)
    against = " with positions" if is_sequence_mask(group) else ""
    what = names["them"] if len(group.variables) == 1 else "values computed from them"
    message = SIZE + f"{{op}} only compares {what}{against}, and a comparison has no derivative."
    step = soft_step(group)
    fix = f"Use a soft step, for example `{step}`."
    if around := _cast_around(group):
        kept = f"; or `soft + {namespace(group)}.stop_gradient({around} - soft)`, which keeps the forward value"
        equal = group.op is not None and group.op.type in EQUAL
        fix = f"Replace `{around}` with a soft step, `soft = {step}`{'' if equal else kept}."
    if (both := both_conditions(group)) is not None:
        fix = f"Replace `{both[0]}` with the product of soft steps, `{both[1]}`."
    if (chosen := _chosen(group)) is not None:
        whole, yes, no = chosen
        finite = "; both sides must be finite everywhere" if _is_computed((yes, no)) else ""
        fix = f"Replace `{whole}` with a soft choice: `gate = {step}`, then `{blend(yes, no)}`{finite}."
        message += braces(who_gets_it(group, _choices(group)[0]))
    return Text(filled(message, names), fix)


def _cast_around(group: Group) -> str:
    """The user's cast of just this comparison, on the same line; empty if there is none."""
    call, source = call_of(group), group.source
    around = call_around(source.code, call) if call is not None and source is not None else None
    return around.text if around is not None and around.head.rpartition(".")[2] in ("cast", "to_float") else ""


def _chosen(group: Group) -> tuple[str, str, str] | None:
    """The user's `tf.where` with just this comparison as its condition, and its two sides; None if there is none."""
    choices = _choices(group)
    if len(choices) != len(discrete_part(group.suspect).uses) or not choices:
        return None
    found = {_where_of(group, op) for op in choices}
    call = found.pop() if len(found) == 1 else None
    if call is None:
        return None
    yes, no = (call.argument(place, name) for place, name in ((1, "x"), (2, "y")))
    if yes is None or no is None:
        return None
    return call.text, yes, no


def _choices(group: Group) -> list[int]:
    """Where the comparison is the condition."""
    uses = discrete_part(group.suspect).uses
    places = {use.consumer for use in uses if use.input == 0 and use.via == group.culprit}
    return [op for op in sorted(places) if group.trace.ops[op].type in CHOICES]


def _where_of(group: Group, op: int) -> Call | None:
    source, name = source_of(group.trace, op), called(group.trace, op).strip("`")
    return call_on(source.code, name) if source is not None and name.endswith("where") else None


def _is_computed(expressions: tuple[str, ...]) -> bool:
    """Whether something is computed in one of them, which may not be finite everywhere."""
    nodes = [node for each in expressions if not is_zero_written(each) for node in ast.walk(module_of(each))]
    return any(isinstance(node, (ast.Call, ast.Div, ast.Pow)) for node in nodes)


CAUSE = Cause(
    name="nondiff_comparison",
    meaning="the value is only compared, or cast to integers only to be compared (`tf.sequence_mask`)",
    severity="error",
    fix="a soft step: `tf.sigmoid((x - threshold) / 0.1)`",
    text=message_and_fix,
    verb="blocks it",
    edits=(soft_comparison,),
    quotes=(
        "Use a soft step, for example ",
        "Replace ",
    ),
)
