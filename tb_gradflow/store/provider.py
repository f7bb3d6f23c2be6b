"""Reads logs through TensorBoard's DataProvider: the only way that works with both of its loaders.

Every call names the run, and the tags if possible: a response of the Rust loader may not exceed 256 MiB, and the Python
loader iterates over everything that is requested.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tensorboard.context import RequestContext
from tensorboard.data.provider import DataProvider, RunTagFilter
from tensorboard.errors import PublicError

from tb_gradflow.errors import DamagedRecord, LogError
from tb_gradflow.store.chunks import Array
from tb_gradflow.store.hyperparameters import Hyperparameters, of_provider
from tb_gradflow.store.layout import PLUGIN, Tag, parse_tag

Answered = TypeVar("Answered")

_TRIES = 100
_PAUSE = 0.01
"""Seconds between two attempts."""

# What TensorBoard raises where a tensor is none: its shape, its type and its bytes disagree.
_NO_TENSOR = (ValueError, TypeError, OverflowError, MemoryError)


def list_runs(
    provider: DataProvider, context: RequestContext, experiment_id: str, run: str | None = None
) -> dict[str, set[Tag]]:
    """The runs that have a session of ours, by TensorBoard's name, and the tags of sessions and traces.

    With `run`, at most that run.
    """
    listed = _asked(
        provider.list_blob_sequences,
        context,
        experiment_id=experiment_id,
        plugin_name=PLUGIN,
        run_tag_filter=None if run is None else RunTagFilter(runs=[run]),
    )
    tags = {name: {tag for tag in map(parse_tag, texts) if tag is not None} for name, texts in sorted(listed.items())}
    return {name: found for name, found in tags.items() if any(tag.kind == "session" for tag in found)}


@dataclass(frozen=True, slots=True)
class Listed:
    """The tags of a run at one time.

    Attributes:
        tags: All of them.
        lengths: For each blob, by its tag as text, how many TensorBoard has.
    """

    tags: frozenset[Tag]
    lengths: Mapping[str, int]


def list_all(provider: DataProvider, context: RequestContext, experiment_id: str) -> dict[str, Listed]:
    """The runs that have a session of ours, by TensorBoard's name, with all of their tags. Two requests for all
    runs."""
    blobs, tensors = (
        _asked(listing, context, experiment_id=experiment_id, plugin_name=PLUGIN)
        for listing in (provider.list_blob_sequences, provider.list_tensors)
    )
    found: dict[str, Listed] = {}
    for run in sorted(blobs):
        texts = [*blobs[run], *tensors.get(run, ())]
        tags = frozenset(tag for tag in map(parse_tag, texts) if tag is not None)
        if any(tag.kind == "session" for tag in tags):
            found[run] = Listed(tags, _lengths(blobs[run]))
    return found


def _lengths(listed: Mapping[str, Any]) -> dict[str, int]:
    return {text: getattr(series, "max_length", 1) for text, series in listed.items()}


class ProviderReader:
    """The `TagReader` of one run of a DataProvider."""

    def __init__(self, provider: DataProvider, context: RequestContext, experiment_id: str, run: str) -> None:
        self._provider = provider
        self._context = context
        self._experiment_id = experiment_id
        self._run = run
        self._lengths: dict[str, int] = {}

    def tags(self) -> Collection[Tag]:
        texts = [*self._listed(self._provider.list_blob_sequences), *self._listed(self._provider.list_tensors)]
        return {tag for tag in map(parse_tag, texts) if tag is not None}

    def knows(self, lengths: Mapping[str, int]) -> None:
        """Called with what was listed for all runs together, which need not be listed again."""
        self._lengths.update(lengths)

    def _listed(self, listing: Callable[..., Any], tag: str | None = None) -> Mapping[str, Any]:
        only = RunTagFilter(runs=[self._run], tags=None if tag is None else [tag])
        listed = _asked(
            listing, self._context, experiment_id=self._experiment_id, plugin_name=PLUGIN, run_tag_filter=only
        )
        found: Mapping[str, Any] = listed.get(self._run, {})
        self._lengths.update(_lengths(found))
        return found

    def _check_length(self, tag: Tag) -> None:
        """Raises DamagedRecord where a blob says that it is many: TensorBoard names each of them, however many."""
        if str(tag) not in self._lengths:
            self._listed(self._provider.list_blob_sequences, str(tag))
        if self._lengths.get(str(tag), 1) != 1:
            raise DamagedRecord(f"damaged log: {tag} holds {self._lengths[str(tag)]} blobs, expected one")

    def problems(self) -> Collection[str]:
        return ()  # TensorBoard's loaders do not say

    def blob(self, tag: Tag) -> bytes:
        self._check_length(tag)
        sequences = _asked(
            self._provider.read_blob_sequences,
            self._context,
            experiment_id=self._experiment_id,
            plugin_name=PLUGIN,
            downsample=1,
            run_tag_filter=RunTagFilter(runs=[self._run], tags=[str(tag)]),
        )
        data = sequences.get(self._run, {}).get(str(tag), ())
        if not data or not data[-1].values:
            raise KeyError(str(tag))
        try:
            return bytes(self._provider.read_blob(self._context, blob_key=data[-1].values[0].blob_key))
        except PublicError as refusal:
            raise LogError(_refused(self._run, refusal)) from refusal
        except _NO_TENSOR as error:
            raise DamagedRecord(_unreadable(tag, error)) from error

    def arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        try:
            return self._arrays(tags)
        except _NO_TENSOR as error:
            # TensorBoard creates the tensors, either all or none of them.
            if len(tags) > 1:
                return {found: array for tag in tags for found, array in self.arrays([tag]).items()}
            return {tag: Array((), b"", _unreadable(tag, error)) for tag in tags}

    def _arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        by_name = {str(tag): tag for tag in tags}
        read = _asked(
            self._provider.read_tensors,
            self._context,
            experiment_id=self._experiment_id,
            plugin_name=PLUGIN,
            downsample=1,
            run_tag_filter=RunTagFilter(runs=[self._run], tags=by_name),
        )
        # The Python loader announces a tag a moment before its data: an empty series is not there yet.
        series = {by_name[name]: data[-1].numpy for name, data in read.get(self._run, {}).items() if data}
        return {tag: _array(tag, values) for tag, values in series.items()}


class ProviderSource:
    """The `Source` of a DataProvider."""

    def __init__(self, provider: DataProvider) -> None:
        self._provider = provider
        self._readers: dict[tuple[str, str], ProviderReader] = {}
        self._lock = threading.Lock()

    def runs(self, context: RequestContext, experiment_id: str) -> dict[str, Collection[Tag]]:
        found = list_all(self._provider, context, experiment_id)
        for run, listed in found.items():
            self.reader(context, experiment_id, run).knows(listed.lengths)
        return {run: listed.tags for run, listed in found.items()}

    def has(self, context: RequestContext, experiment_id: str, run: str) -> bool:
        return run in list_runs(self._provider, context, experiment_id, run)

    def reader(self, context: RequestContext, experiment_id: str, run: str) -> ProviderReader:
        with self._lock:
            new = ProviderReader(self._provider, context, experiment_id, run)
            return self._readers.setdefault((experiment_id, run), new)

    def hyperparameters(self, context: RequestContext, experiment_id: str) -> Mapping[str, Hyperparameters]:
        return of_provider(self._provider, context, experiment_id)


def _unreadable(tag: Tag, error: Exception) -> str:
    return f"damaged log: TensorBoard cannot read {tag} ({error})"


def _array(tag: Tag, values: Any) -> Array:
    expected = "float64" if tag.kind in ("steps", "cost") else "float32"
    if values.dtype.name != expected:
        return Array((), b"", f"damaged log: {tag} is of type {values.dtype.name}, expected {expected}")
    return Array(tuple(values.shape), values.astype(values.dtype.newbyteorder("<")).tobytes())


def _asked(ask: Callable[..., Answered], *place: Any, **question: Any) -> Answered:
    """The result of a provider; the request is repeated if its loader was in the middle of an update.

    The Python loader fills its tables in another thread without a lock: a tag is listed a moment before it can be read
    (KeyError), and a table may grow while it is iterated (RuntimeError).
    """
    for _ in range(_TRIES):
        try:
            return ask(*place, **question)
        except (KeyError, RuntimeError):
            time.sleep(_PAUSE)
    return ask(*place, **question)


def _refused(run: str, refusal: PublicError) -> str:
    # The Rust loader identifies a blob by JSON, and cannot read its own JSON if that contains a backslash.
    if json.dumps(run, ensure_ascii=False) != f'"{run}"':
        return (
            f"TensorBoard's fast loader cannot read a run whose name has quotes, backslashes or control characters, "
            f"as {run!r} has: rename the directory, or start TensorBoard with --load_fast=false"
        )
    return f"TensorBoard cannot read the run {run!r}: {refusal}"
