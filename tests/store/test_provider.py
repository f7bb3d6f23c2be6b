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


class InTheMidst(MultiplexerDataProvider):
    """Every second question comes while the loader is in the midst of something, as it was seen to answer then."""

    def __init__(self, logdir: str, says: Exception) -> None:
        multiplexer = EventMultiplexer()
        multiplexer.AddRunsFromDirectory(logdir)
        multiplexer.Reload()
        super().__init__(multiplexer, logdir)
        self._says = says
        self._asked = 0

    def _late(self) -> None:
        self._asked += 1
        if self._asked % 2:
            raise self._says

    def list_tensors(self, *place: Any, **question: Any) -> Any:
        self._late()
        return super().list_tensors(*place, **question)

    def list_blob_sequences(self, *place: Any, **question: Any) -> Any:
        self._late()
        return super().list_blob_sequences(*place, **question)

    def read_tensors(self, *place: Any, **question: Any) -> Any:
        self._late()
        return super().read_tensors(*place, **question)

    def read_blob_sequences(self, *place: Any, **question: Any) -> Any:
        self._late()
        return super().read_blob_sequences(*place, **question)


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
