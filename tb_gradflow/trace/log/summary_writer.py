"""Uses the user's `tf.summary` writer as the destination of a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_gradflow.store.writer import LogWriter
from tb_gradflow.trace.log.recorder import Recorder, new_session
from tb_gradflow.trace.protection.functions import preceded


class WriterRecorder(Recorder):
    """One session of a log that is stored in the file of a `tf.summary` writer."""

    def __init__(self, writer: Any) -> None:
        super().__init__("", new_session("summary"))
        self._summary_writer = writer

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _open(self) -> LogWriter:
        if self._writer is None:
            self._writer = LogWriter(self._session, _WriterSink(self._summary_writer))
        return self._writer


class _WriterSink:
    """Accepts the records of an event file, and passes their summaries to a writer."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, record: bytes) -> None:
        event = tf.compat.v1.Event.FromString(record)
        # The file's first record, with its version, is written by the writer itself.
        if event.HasField("summary") and not getattr(self._writer, "_closed", False):
            with tf.init_scope(), self._writer.as_default(), tf.summary.record_if(True):
                tf.summary.experimental.write_raw_pb(event.summary.SerializeToString(), step=event.step)

    def flush(self) -> None:
        """The writer decides when to flush."""

    def close(self) -> None:
        """The writer belongs to the user."""


def before_flush(writer: Any, write: Callable[[], None]) -> None:
    """After a writer is flushed or closed, everything that was recorded must be readable. `write` raises nothing."""
    writer.flush = preceded(writer.flush, write)
