"""Texts about blocks of `gradient_override_map`: their lines, and the ops that they do not reach."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.requests import is_by_tape
from tb_gradflow.analyse.words.names import Group, file_name
from tb_gradflow.record.schema import Override, Trace


def out_of_reach(trace: Trace, kind: str) -> str:
    """A sentence on a block that is meant for ops of a type, and reaches none of them; empty if there is none."""
    meant = [each for each in trace.overrides if each.type == kind and not (each.used and is_by_tape(trace))]
    missed = next(iter(sorted(meant, key=lambda each: each.used)), None)
    if missed is None:
        return ""
    return (
        f" The `gradient_override_map`{place_of(trace, missed)} does not apply to it: an override covers only ops "
        f"created inside its block, and this one was created outside."
    )


def place_of(trace: Trace, override: Override) -> str:
    source = trace.sources[override.source] if override.source is not None else None
    return f" ({file_name(source.file)}:{source.line})" if source is not None else ""


def is_function(group: Group) -> bool:
    """Whether it belongs to a function; else it stands in for the gradient of a single op."""
    return group.op is not None and group.op.type == "IdentityN"
