"""What a step has raised: while it was traced, or while it ran."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import tensorflow as tf

from tb_gradflow.record.schema import Raised, Trace
from tb_gradflow.trace.source.frames import Frame, frames_of
from tb_gradflow.trace.source.user_line import in_log, origin_of
from tb_gradflow.trace.tf_internals.raised_by import differentiated, indices_outside

_FRAME = re.compile(r'File "(.+?)", line (\d+), in (\w+)')
_NUMBER = re.compile(r"_\d+$")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_EAGER_OP = re.compile(r"\[Op:(\w+)\]")
_NOISE = re.compile(r"\{\{function_node [^}]*\}\} ?|\x1b\[\d+m| ?\[Op:\w+\]")
"""What is around a message: the name of a compiled function, colours, and the type of an eager op."""

_IN_DATA = "user-defined function passed to"
"""What the ops of `tf.data` say of an error in such a function."""

_GRADIENT = "gradient_tape/"
"""The scope of the ops with which a tape computes gradients."""

_SAID_BY = (
    ("label value", ("SparseSoftmaxCrossEntropy",)),
    ("segment", ("Segment",)),
    ("partitions[", ("Partition",)),
    ("indices[", ("Gather", "Scatter")),
)
"""Words of errors about indices, and what the types of the ops contain that raise them."""

_MOST_CHARACTERS = 300


def with_raised(trace: Trace, error: BaseException) -> Trace:
    """The structure of a step, and what an op has raised while it ran; or another exception, if nothing else is known
    to be wrong with it: all gradients that it requested have arrived."""
    if not isinstance(error, tf.errors.OpError):
        outcomes = {each.outcome for each in trace.variable_gradients} - {"not_asked"}
        named = type(error).__name__
        # That of a function which AutoGraph has changed ends with the original one.
        said = _line_of(str(error)).removeprefix(f"{named}: ")
        return (
            replace(trace, raised=(Raised(-1, "", None, None, f"{named}: {said}"),)) if outcomes == {"value"} else trace
        )
    said = str(error.message)
    indices, size = indices_outside(said)
    place, kind, source, api = _op_in(trace, said), "", None, None
    if place >= 0:
        kind, source, api = trace.ops[place].type, trace.ops[place].source, trace.ops[place].api
    elif (eager := _EAGER_OP.search(said)) is not None and not eager[1].startswith("__"):
        kind = eager[1]
        trace, place, source, api = _at_line(trace, kind, frames_of(traceback.extract_tb(error.__traceback__)))
    elif (nodes := _NODE.findall(said)) and _may_index(named := _NUMBER.sub("", nodes[-1].rpartition("/")[2]), said):
        # Not a part of what is differentiated, such as an op that only sees data.
        kind = named
        frames = [Frame(file, int(line), function) for file, line, function in _FRAME.findall(said)]
        trace, _, source, api = _at_line(trace, kind, frames)
    line = f"{type(error).__name__}: {_line_of(said)}"
    known = {"size": float(size), "low": float(min(indices)), "high": float(max(indices))} if size >= 0 else {}
    return replace(trace, raised=(Raised(place, kind, source, api, line, **known),))


def _op_in(trace: Trace, said: str) -> int:
    """The op of the trace that a message names; -1 if there is none, or several."""
    names = _NODE.findall(said)
    if any(name.rpartition("/")[2].startswith("IteratorGetNext") for name in names) or _IN_DATA in said:
        return -1
    for name in [*names, *(_differentiated(trace, each) for each in names)]:
        exact = [place for place, op in enumerate(trace.ops) if op.name == name]
        scoped = "/" in name
        found = exact or [place for place, op in enumerate(trace.ops) if scoped and op.name.endswith(f"/{name}")]
        if name and len(found) == 1 and _may_index(trace.ops[found[0]].type, said):
            return found[0]
    # TensorFlow puts several ops into one, and then names only that.
    if indices_outside(said)[1] >= 0:
        for is_it in (partial(_may_index, said=said), _is_by_index):
            alone = [place for place, op in enumerate(trace.ops) if not op.backward and is_it(op.type)]
            if alone:
                return alone[0] if len(alone) == 1 and _may_have(trace, alone[0], indices_outside(said)[1]) else -1
    return -1


def _may_have(trace: Trace, place: int, size: int) -> bool:
    """Whether what an op indexes may have so many elements: not if it is a variable with other sizes."""
    given = next((edge.op for edge in trace.ops[place].inputs if edge.input == 0), place)
    reads = trace.ops[given].reads if given >= 0 else None
    return reads is None or size in trace.variables[reads].shape


def _is_by_index(kind: str) -> bool:
    """Whether the gradient of an op of this type is summed by the same indices."""
    return "Gather" in kind or "Scatter" in kind


def _may_index(kind: str, said: str) -> bool:
    """Whether an op of this type may have raised this error, if that is about an index."""
    kinds = next((kinds for words, kinds in _SAID_BY if words in said), ("",))
    return indices_outside(said)[1] < 0 or any(each in kind for each in kinds)


def _differentiated(trace: Trace, name: str) -> str:
    """The name of the op whose gradient an op with this name is a part of; empty if there is none."""
    if not name.startswith(_GRADIENT):
        return ""
    known, scope = {op.name for op in trace.ops}, name.removeprefix(_GRADIENT)
    while scope and scope not in known:
        scope = scope.rpartition("/")[0]
    return scope


def _at_line(trace: Trace, kind: str, frames: Sequence[Frame]) -> tuple[Trace, int, int | None, str | None]:
    """The trace with the user's line that has made an op of this type; the op of that line, -1 if it is not the only
    one of its type; the number of the line, and the function that it called."""
    are_kept = bool(trace.sources) or not trace.ops
    origin = origin_of(frames, kind, keep_source=are_kept)
    source = origin.source
    if source is None:  # such as one that a layer of Keras runs
        found = [place for place, op in enumerate(trace.ops) if (op.type, op.source) == (kind, None)]
        return trace, found[0] if len(found) == 1 else -1, None, origin.api
    source = in_log(source)
    known = next((place for place, each in enumerate(trace.sources) if each == source), len(trace.sources))
    found = [place for place, op in enumerate(trace.ops) if (op.type, op.source) == (kind, known)]
    if known == len(trace.sources):
        trace = replace(trace, sources=(*trace.sources, source))
    return trace, found[0] if len(found) == 1 else -1, known, origin.api


def _line_of(said: str) -> str:
    """The first line of a message that is about the error itself, of limited length."""
    lines = [line.strip() for line in said.splitlines()]
    about = [line for line in lines if indices_outside(line)[1] >= 0 or "is not invertible" in line]
    # An error of a compiled function begins with the calls that made the op.
    last = [line for line in lines if line and "{{node" not in line and not line.startswith("File ")]
    line = _NOISE.sub("", (about or last[-1:] or [""])[0])
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]} …"


def with_failure(trace: Trace, error: BaseException) -> Trace:
    """The structure of a step, and the error that it raised; if an op's gradient function raised it, at that op."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    kind = differentiated(error)
    raising = [place for place, op in enumerate(trace.ops) if op.type == kind and not op.backward]
    ops = list(trace.ops)
    for place in raising if len(raising) == 1 else ():
        inputs = [replace(edge, passes="error") if edge.passes == "yes" else edge for edge in ops[place].inputs]
        ops[place] = replace(ops[place], inputs=tuple(inputs))
    return replace(trace, ops=tuple(ops), failure=f"{type(error).__name__}: {first}")
