"""TensorBoard's Python loader, whose tables change while they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext

from tb_gradflow.store.provider import ProviderReader, list_runs
from tb_gradflow.store.run import StoredRun
from tests.store.samples import write_log


def late(name: str) -> Any:
    """A question that every second time comes while the loader is in the midst of something."""

    def ask(self: InTheMidst, *place: Any, **question: Any) -> Any:
        self.asked += 1
        if self.asked % 2:
            raise self.says
        return getattr(MultiplexerDataProvider, name)(self, *place, **question)

    return ask


class InTheMidst(MultiplexerDataProvider):
    """Answers then as the real one was seen to."""

    def __init__(self, logdir: str, says: Exception) -> None:
        multiplexer = EventMultiplexer()
        multiplexer.AddRunsFromDirectory(logdir)
        multiplexer.Reload()
        super().__init__(multiplexer, logdir)
        self.says = says
        self.asked = 0

    list_tensors = late("list_tensors")
    list_blob_sequences = late("list_blob_sequences")
    read_tensors = late("read_tensors")
    read_blob_sequences = late("read_blob_sequences")


@pytest.mark.parametrize(
    "says", [KeyError("gradflow/gradients/1"), RuntimeError("dictionary changed size during iteration")]
)
def test_a_loader_that_is_not_done_is_asked_again(tmp_path: Path, says: Exception) -> None:
    write_log(tmp_path, steps=40)
    provider = InTheMidst(str(tmp_path), says)

    [name] = list_runs(provider, RequestContext(), "")
    run = StoredRun(ProviderReader(provider, RequestContext(), "", name))
    index = run.index()

    assert index.steps == tuple(range(40))
    assert run.gradients(index.session.id, 33).shape == (7, 3, 6)
    assert len(run.trace(index.session.id, 0).ops) == 6
