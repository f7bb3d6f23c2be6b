"""A run that was never in a file: one step that `explain` ran."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping

from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import (
    GRADIENT_STATISTICS,
    VARIABLE_STATISTICS,
    Session,
    StepRecord,
    Trace,
)
from tb_gradflow.store.layout import Tag, pack_json
from tb_gradflow.store.run import Array

_FLOAT_BYTES = 4


class MemoryReader:
    """The `TagReader` of one trace and at most one of its steps."""

    def __init__(self, session: Session, trace: Trace, step: StepRecord | None) -> None:
        self._blobs = {
            Tag("session", session.id, -1): encode(session),
            Tag("trace", session.id, trace.index): encode(trace),
        }
        if step is not None and step.values is not None:
            self._blobs[Tag("values", session.id, step.step)] = encode(step.values)
        self._arrays = {} if step is None else _arrays(session.id, step)

    def tags(self) -> Collection[Tag]:
        return {*self._blobs, *self._arrays}

    def problems(self) -> Collection[str]:
        return ()

    def blob(self, tag: Tag) -> bytes:
        return pack_json(self._blobs[tag])

    def arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        return {tag: self._arrays[tag] for tag in tags if tag in self._arrays}


def _arrays(session: str, step: StepRecord) -> dict[Tag, Array]:
    table = (step.step, step.wall_time, step.trace, *step.losses)
    return {
        Tag("steps", session, step.step): Array((1, len(table)), struct.pack(f"<{len(table)}d", *table)),
        Tag("gradients", session, step.step): _floats(step.gradients, len(GRADIENT_STATISTICS)),
        Tag("variables", session, step.step): _floats(step.variables, len(VARIABLE_STATISTICS)),
    }


def _floats(data: bytes, columns: int) -> Array:
    return Array((1, len(data) // (columns * _FLOAT_BYTES), columns), data)
