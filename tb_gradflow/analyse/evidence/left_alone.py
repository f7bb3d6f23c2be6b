"""Arrays of tensors whose writes are lost: `write` returns the array that contains what was written."""

from __future__ import annotations

from tb_gradflow.analyse.words.code import call_on
from tb_gradflow.analyse.words.names import source_of
from tb_gradflow.record.schema import Trace


def write_left_alone(trace: Trace, op: int) -> str:
    """The user's line with its result assigned to the array that it writes to; empty if it is another line, or uses the
    result."""
    source = source_of(trace, op)
    if source is None or trace.ops[op].type != "TensorListSetItem":
        return ""
    call = call_on(source.code, "write")
    array = call.head.rpartition(".")[0] if call is not None and call.text == source.code.strip() else ""
    return f"{array} = {call.text}" if call is not None and array else ""
