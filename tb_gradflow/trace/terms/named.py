"""Terms by name: the summands of a loss, with summands that belong together joined, each with the name that a person
would use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tb_gradflow.record.schema import TermKind
from tb_gradflow.trace.graph.variables import distinct
from tb_gradflow.trace.source.frames import Frame, frames_of
from tb_gradflow.trace.source.user_line import is_users
from tb_gradflow.trace.terms.summands import Summand
from tb_gradflow.trace.terms.written import (
    assigned_by,
    begun_by,
    dictionary_of,
    is_unnamed_in_layer,
    keys_of,
    line_of,
)

MOST_TERMS = 16
"""Each costs a backward pass. If a loss has more, the last ones are measured together."""

REGULARIZERS = "regularizers"

_COMPILED = "/compile_utils.py"


@dataclass(slots=True)
class Term:
    """A term of a loss.

    Attributes:
        name: Its name.
        kind: See the record.
        summands: The summands of the graph that it consists of.
        frames: The stack that contains the user's line for it.
    """

    name: str
    kind: TermKind
    summands: list[Summand]
    frames: Sequence[Frame]

    @property
    def moves(self) -> bool:
        """Whether it depends on the sources of a gradient."""
        return any(each.moves for each in self.summands)


def terms_of(summands: Sequence[Summand], layer_of: Callable[[Any], str]) -> list[Term]:
    """The terms, in the order of the loss. `layer_of` returns the name of the layer that a tensor comes from."""
    frames = [frames_of(each.made_by.op.traceback) for each in summands]
    compiled = [any(frame.file.endswith(_COMPILED) for frame in each) for each in frames]
    terms: list[Term] = []
    keys = _keys(summands)
    for each, stack, by_compile in zip(summands, frames, compiled, strict=True):
        if _is_regularizer(stack):
            known = next((term for term in terms if term.kind == "regularizers"), None)
            if known is not None:
                known.summands.append(each)
                continue
            terms.append(Term(REGULARIZERS, "regularizers", [each], stack))
            continue
        several = by_compile and sum(compiled) > 1
        name = keys.get(id(each)) or begun_by(stack, each.written.totals) or each.written.name
        if name and is_unnamed_in_layer(stack, name):
            name = layer_of(each.tensor)
        name = name or _own_name(stack, layer_of(each.tensor), by_compile, several)
        terms.append(Term(name, "term", [each], stack))
    if len(terms) > MOST_TERMS:
        rest = terms[MOST_TERMS - 1 :]
        joined = [summand for term in rest for summand in term.summands]
        terms[MOST_TERMS - 1 :] = [Term(f"{len(rest)} others", "others", joined, ())]
    for term, name in zip(terms, distinct([term.name for term in terms]), strict=True):
        term.name = name
    return terms


def _keys(summands: Sequence[Summand]) -> dict[int, str]:
    """Names by id of a summand: if a dictionary holds exactly these summands, its keys. They were computed in order."""
    groups: dict[int, list[Summand]] = {}
    statements: dict[int, Any] = {}
    for each in summands:
        statement = dictionary_of(frames_of(each.tensor.op.traceback))
        if statement is not None:
            statements[id(statement)] = statement
            groups.setdefault(id(statement), []).append(each)
    found: dict[int, str] = {}
    for number, group in groups.items():
        keys = keys_of(statements[number])
        if len(keys) == len(group) > 1 and len({id(each.tensor.graph) for each in group}) == 1:
            ordered = sorted(group, key=lambda each: each.tensor.op._id)
            found.update((id(each), key) for each, key in zip(ordered, keys, strict=True))
    return found


def _own_name(frames: Sequence[Frame], layer: str, by_compile: bool, several: bool) -> str:
    if several and layer:
        return layer
    if not by_compile and (assigned := assigned_by(frames)):
        return assigned
    if by_compile:
        return _loss_function(frames) or layer or "loss"
    line = line_of(frames)
    return layer or (line.function if line is not None and line.function.isidentifier() else "") or "loss"


def _loss_function(frames: Sequence[Frame]) -> str:
    """The function in `compile(loss=…)`, or the function for the name in it."""
    for frame in frames:
        if is_users(frame.file) and frame.function.isidentifier() and _follows_compile(frames, frame):
            return frame.function.removeprefix("tf__")
    inner = [frame.function for frame in frames if frame.file.endswith(("/losses/losses.py", "/src/losses.py"))]
    return next((name for name in reversed(inner) if name not in ("call", "__call__", "reduce_values")), "")


def _follows_compile(frames: Sequence[Frame], frame: Frame) -> bool:
    place = max(number for number, each in enumerate(frames) if each.file.endswith(_COMPILED))
    return list(frames).index(frame) > place


def _is_regularizer(frames: Sequence[Frame]) -> bool:
    """Whether a weight's regularizer created it. A regularizer of a layer's output is called while the layer is
    called.
    """
    functions = {frame.function for frame in frames}
    return bool(functions & {"_get_regularization_losses", "_get_regularizer_losses", "_loss_for_variable"})
