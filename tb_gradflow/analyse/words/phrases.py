"""Sentences and hints that several causes use."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from math import prod

from tb_gradflow.analyse.evidence.optimum import is_last
from tb_gradflow.analyse.step.measured import LARGE_INPUT
from tb_gradflow.analyse.words.code import call_on
from tb_gradflow.analyse.words.fields import BARE_SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text, source_of
from tb_gradflow.record.schema import Trace

FROM_LOGITS = "compute the loss from the logits, `from_logits=True`"


def is_output(group: Group) -> bool:
    """Whether the output of the culprit is not multiplied by any weight: then the loss follows."""
    return is_last(group.suspect.topology, group.suspect.target, group.culprit)


def large_inputs(group: Group) -> str:
    """What to do about a batch of large numbers; empty if it contains none."""
    trace, measured = group.trace, group.suspect.measured
    large = [(each.name, report.max_abs) for each in trace.inputs if (report := measured.of_row(each.row)) is not None]
    told = [(name, size) for name, size in large if size > LARGE_INPUT and name.partition("[")[0] != "y"]
    if not told:
        return ""
    name, size = told[0]
    x = name if name.isidentifier() else "x"
    return f" In this batch, `{name}` reaches {size:.3g}: scale it first, `({x} - {x}.mean(0)) / ({x}.std(0) + 1e-7)`."


CHECK = "`tb_gradflow.check_gradients(loss_fn, args, gradient)` compares your gradient with finite differences"

# TensorFlow's name of a node, before its message.
_NODE_NAME = re.compile(r"\{+[^{}]*\}+ ?")


def failure(group: Group) -> str:
    """The error with which the step failed, in one line of limited length."""
    return textwrap.shorten(_NODE_NAME.sub("", group.trace.failure), 200, placeholder=" …")


def in_layer(group: Group) -> bool:
    """Whether the variables belong to a layer, as far as their names tell."""
    return "/" in group.names[0]


AT_A_MINIMUM = (
    "it has shrunk in the course of the training, as have those of the other variables. A gradient still arrives at "
    "the ops that use {them}, and cancels over the rows of the batch or over the terms of the loss, as it does at a "
    "minimum."
)
AS_AT_ITS_END = (
    "Nothing to fix if the training is at its end. If the loss is still too high, this model cannot fit the data "
    "better from here."
)


def nothing_left_to_learn(group: Group) -> Text:
    return Template(
        BARE_SIZE + "the loss is close to zero, so there is nothing left to learn from this batch.", "Nothing to fix."
    )(group)


_MOST_ROWS = 5


def listed_rows(rows: Sequence[int]) -> str:
    """Some rows of a batch, as the subject of a sentence."""
    shown = [str(row) for row in rows[:_MOST_ROWS]]
    if len(rows) > _MOST_ROWS:
        return f"Rows {', '.join(shown)} and {len(rows) - _MOST_ROWS} more"
    return f"Row {shown[0]}" if len(rows) == 1 else f"Rows {', '.join(shown[:-1])} and {shown[-1]}"


def braces(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def counted(group: Group, variables: tuple[int, ...], column: int, most: int = 3) -> str:
    numbers = group.suspect.measured.variables
    assert numbers is not None
    told = [
        f"`{group.trace.variables[each].name}` ({int(numbers[each, column])} of "
        f"{prod(group.trace.variables[each].shape)} values)"
        for each in variables[:most]
    ]
    more = len(variables) - most
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def of_batch(group: Group) -> str:
    """What is wrong with the batch, as a sentence; empty if nothing is."""
    bad = group.suspect.measured.nonfinite_inputs
    told = [
        f"`{name}` contains "
        + " and ".join(f"{n} {word}" for n, word in ((r.nan_count, "NaN"), (r.inf_count, "Inf")) if n)
        + (" value" if r.nan_count + r.inf_count == 1 else " values")
        for name, r in bad
    ]
    return f"In this batch, {', '.join(told)}." if told else ""


def write_left_alone(trace: Trace, op: int) -> str:
    """The user's line that writes to a `tf.TensorArray`, with its result assigned to the array; empty if it is another
    line, or uses the result."""
    source = source_of(trace, op)
    if source is None or trace.ops[op].type != "TensorListSetItem":
        return ""
    call = call_on(source.code, "write")
    array = call.head.rpartition(".")[0] if call is not None and call.text == source.code.strip() else ""
    return f"{array} = {call.text}" if call is not None and array else ""


DECIDED_ONCE = (
    "To add up the gradients of several steps, apply them in every step, with `gradient_accumulation_steps=...` of "
    "Keras's optimizers. For another condition, use a `tf.Variable` instead of the Python value, and `tf.cond`."
)
"""What to do if Python has decided once, while a step was compiled, whether it requests gradients or applies them."""
