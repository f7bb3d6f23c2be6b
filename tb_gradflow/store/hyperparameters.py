"""Hyperparameters of runs, if they were logged in the format of TensorBoard's HParams plugin. This module only
reads.
"""

from __future__ import annotations

import logging
import math
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Value as ProtoValue

from tb_gradflow.errors import LogError
from tb_gradflow.plain import text_of_path
from tb_gradflow.record.expected import owners_of
from tb_gradflow.store.event_file import records
from tb_gradflow.store.files import opened, walked
from tb_gradflow.store.layout import PLUGIN as OURS
from tb_gradflow.store.messages import Event, HParamsPluginData

if TYPE_CHECKING:
    from tensorboard.context import RequestContext
    from tensorboard.data.provider import DataProvider

LOGGER = logging.getLogger("tb_gradflow")

Value = float | str | bool
Hyperparameters = Mapping[str, Value]

PLUGIN = "hparams"
TAG = "_hparams_/session_start_info"
"""As in `tensorboard/plugins/hparams/metadata.py`, which imports NumPy."""

# They are written before the training begins, so a longer file is not searched to its end.
_BEGINNING = 1 << 20


def of_provider(provider: DataProvider, context: RequestContext, experiment_id: str) -> dict[str, Hyperparameters]:
    """TensorBoard's runs that have hyperparameters, with these."""
    from tensorboard.data.provider import RunTagFilter

    listed = provider.list_tensors(
        context, experiment_id=experiment_id, plugin_name=PLUGIN, run_tag_filter=RunTagFilter(tags=[TAG])
    )
    found = {run: _decoded(series[TAG].plugin_content) for run, series in listed.items() if TAG in series}
    return {run: values for run, values in found.items() if values}


def below(root: str) -> dict[str, Hyperparameters]:
    """The same for a local directory; the names of runs are relative to it, with `/`, and `.` is the directory
    itself.
    """
    found: dict[str, Hyperparameters] = {}
    for directory, names in walked(root):
        for name in sorted(names):
            is_others = "tfevents" in name and not name.endswith(f".{OURS}")
            values = _in_file(os.path.join(directory, name)) if is_others else None
            if values:
                found[text_of_path(os.path.relpath(directory, root)).replace(os.sep, "/")] = values
    return found


def of_run(name: str, known: Mapping[str, Hyperparameters]) -> Hyperparameters:
    """The hyperparameters of the run of that name: logged in its directory, below it, or in a parent directory;
    otherwise none.
    """
    inside = sorted((run for run in known if run.startswith(f"{name}/")), key=lambda run: (run.count("/"), run))
    for run in (name, *inside, *owners_of(name)):
        if run in known:
            return known[run]
    return {}


def _in_file(path: str) -> Hyperparameters | None:
    try:
        with opened(path) as file:
            if not os.fstat(file.fileno()).st_size:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if content.find(TAG.encode(), 0, _BEGINNING) < 0:
                    return None
            for place in records(file, path, 0):
                file.seek(place.offset)
                contents = _contents(Event.FromString(file.read(place.length)))
                if (values := next(contents, None)) is not None:
                    return values
                if place.offset > _BEGINNING:
                    break
    except (LogError, DecodeError, OSError):
        LOGGER.debug("%s: the hyperparameters cannot be read", path, exc_info=True)
    return None


def _contents(event: Event) -> Iterator[Hyperparameters]:
    for value in event.summary.value:
        if value.tag == TAG:
            yield _decoded(value.metadata.plugin_data.content)


def _decoded(content: bytes) -> Hyperparameters:
    """Empty if the value is not set."""
    try:
        data = HParamsPluginData.FromString(content)
    except DecodeError:
        return {}
    return dict(_values(data.session_start_info.hparams.items()))


def _values(pairs: Iterable[tuple[str, ProtoValue]]) -> Iterator[tuple[str, Value]]:
    for name, value in pairs:
        kind = value.WhichOneof("kind")
        if kind == "number_value" and not math.isfinite(value.number_value):
            yield name, str(value.number_value)  # JSON cannot represent this number
        elif kind in ("number_value", "string_value", "bool_value"):
            yield name, getattr(value, kind)
