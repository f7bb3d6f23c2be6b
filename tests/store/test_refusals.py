"""What nobody can have recorded is refused in words, each in its own place; what lies beside it is read."""

from __future__ import annotations

import gzip
import math
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard import errors
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.context import RequestContext
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

import tb_gradflow
from tb_gradflow.errors import DamagedRecord, LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.cost import Cost
from tb_gradflow.record.schema import StepValues
from tb_gradflow.store import event_file as event_files
from tb_gradflow.store import provider as providers
from tb_gradflow.store.chunks import Array, read_cost
from tb_gradflow.store.crc32c import in_c
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.hyperparameters import below, of_provider
from tb_gradflow.store.layout import Tag, blob_value, event, event_file_path, float32_value, float64_value, pack_json
from tb_gradflow.store.provider import ProviderReader, list_all, list_runs
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.writer import RecordFile, chunk_event
from tests.store.samples import BEGAN, event_file, open_writer, session, step, trace, write_log

SESSION = session().id
COST = Tag("cost", SESSION, 0)


def costs(*numbers: float) -> Array:
    return Array((1, len(numbers)), struct.pack(f"<{len(numbers)}d", *numbers))


def appended(log_dir: Path, *values: Summary.Value) -> None:
    """Another event file in the directory of a log."""
    file = RecordFile(event_file_path(str(log_dir)))
    file.write(event(list(values), 0, BEGAN).SerializeToString())
    file.close()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (costs(1, 2, 3, 4), r"has shape \(1, 4\), expected \[1, 5\]"),
        (costs(1, -2, 3, 4, 5), r"expected numbers of steps and seconds, got \(1\.0, -2\.0"),
        (costs(1, 2, 3, math.nan, 5), "expected numbers of steps and seconds"),
        (Array((1, 5), bytes(8)), r"holds 8 bytes, its shape is \(1, 5\)"),
    ],
)
def test_a_cost_that_cannot_be_is_refused(table: Array, said: str) -> None:
    with pytest.raises(DamagedRecord, match=said):
        read_cost(COST, table)


def test_a_damaged_cost_leaves_the_one_before_it(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        writer.write_cost(Cost(1, 1, 10.0, 0.5, 3.0))
        writer.write_step(step(0))
    appended(tmp_path, float64_value(Tag("cost", SESSION, 9), (1, 2), bytes(16)))
    run = StoredRun(DirectoryReader(str(tmp_path / "gradflow")))

    first, second = run.index(), run.index()

    assert first.cost == second.cost == Cost(1, 1, 10.0, 0.5, 3.0)
    assert first.cost is not None
    assert first.cost.share == 0.05
    assert Cost(0, 0, 0.0, 0.0, 0.0).share == 0
    assert [problem for problem in second.damaged if "cost" in problem] != []


class TestOfOneRecord:
    """A log with one record that is something else."""

    def run(self, tmp_path: Path, *values: Summary.Value) -> StoredRun:
        write_log(tmp_path, steps=1)
        appended(tmp_path, *values)
        run = StoredRun(DirectoryReader(str(tmp_path / "gradflow")))
        assert run.index().steps[0] == 0
        return run

    def test_a_tag_holds_one_blob(self, tmp_path: Path) -> None:
        tag = Tag("trace", SESSION, 1)
        two = blob_value(tag, b"one")
        two.tensor.string_val.append(b"two")

        with pytest.raises(DamagedRecord, match="holds 2 blobs, expected one"):
            self.run(tmp_path, two).trace(SESSION, 1)

    def test_numbers_have_the_type_of_their_kind(self, tmp_path: Path) -> None:
        tag = Tag("gradients", SESSION, 1)
        steps = chunk_event(SESSION, [step(1)]).summary.value[2]

        with pytest.raises(DamagedRecord, match="is of type 2, expected 1"):
            self.run(tmp_path, float64_value(tag, (1, 3, 6), bytes(144)), steps).gradients(SESSION, 1)

    def test_steps_have_the_type_of_theirs(self, tmp_path: Path) -> None:
        run = self.run(tmp_path, float32_value(Tag("steps", SESSION, 1), (1, 4), bytes(16)))

        assert run.index().steps == (0,)
        assert [problem for problem in run.index().damaged if "is of type 1, expected 2" in problem] != []

    def test_a_tensor_has_few_dimensions(self, tmp_path: Path) -> None:
        tag = Tag("steps", SESSION, 1)

        assert "has 9 dimensions" in self.run(tmp_path, float64_value(tag, (1,) * 9, bytes(8))).index().damaged[0]

    def test_a_trace_is_the_one_of_its_tag(self, tmp_path: Path) -> None:
        with pytest.raises(DamagedRecord, match="holds the trace 0"):
            self.run(tmp_path, blob_value(Tag("trace", SESSION, 1), pack_json(encode(trace())))).trace(SESSION, 1)

    def test_values_are_those_of_the_step_of_their_tag(self, tmp_path: Path) -> None:
        values = blob_value(Tag("values", SESSION, 1), pack_json(encode(StepValues(7, 4, ()))))

        with pytest.raises(DamagedRecord, match="holds the values of step 7"):
            self.run(tmp_path, values).values(SESSION, 1, trace())

    @pytest.mark.parametrize(
        ("blob", "said"),
        [
            (b"no gzip", "cannot be unpacked"),
            (gzip.compress(b"{}")[:-3], "its end is missing"),
            (gzip.compress(b"{}") + b"more", "there is data after its end"),
            (gzip.compress(b'{"index": 1e999}'), "1e999 is too large"),
            (gzip.compress(b'{"index": NaN}'), "NaN is not a number in JSON"),
            (gzip.compress(b"[" * 100_000), "nested too deeply"),
            (gzip.compress(b"\xff"), "cannot be unpacked"),
        ],
        ids=["nothing", "cut off", "more", "large", "no number", "deep", "no text"],
    )
    def test_a_blob_is_json_in_gzip(self, tmp_path: Path, blob: bytes, said: str) -> None:
        run = self.run(tmp_path, blob_value(Tag("trace", SESSION, 1), blob))

        with pytest.raises(DamagedRecord, match=f"damaged log: gradflow/trace/{SESSION}/1 cannot be unpacked") as told:
            run.trace(SESSION, 1)
        assert said in str(told.value)

    def test_half_a_surrogate_pair_becomes_a_question_mark(self, tmp_path: Path) -> None:
        named = pack_json({**encode(trace(1)), "notes": ["\ud800 half"]})

        found = self.run(tmp_path, blob_value(Tag("trace", SESSION, 1), named)).trace(SESSION, 1)

        assert found.notes == ("? half",)


def test_a_file_that_changes_between_two_looks_is_a_log_error(tmp_path: Path) -> None:
    tag, other = Tag("trace", SESSION, 1), Tag("trace", SESSION, 2)
    appended(tmp_path, blob_value(tag, b"one"))
    reader = DirectoryReader(str(tmp_path / "gradflow"))
    assert reader.tags() == {tag}

    appended(tmp_path / "other", blob_value(other, b"two"))
    event_file(tmp_path).write_bytes(event_file(tmp_path / "other").read_bytes())

    with pytest.raises(LogError, match="was changed while it was read"):
        reader.blob(tag)


def test_which_files_are_event_files_of_ours(tmp_path: Path) -> None:
    ours = write_log(tmp_path, steps=1)
    others = tmp_path / "events.out.tfevents.1.host.v2"
    others.write_bytes(b"")

    assert event_files.is_event_file(str(ours))
    assert not event_files.is_event_file(str(others))
    others.write_bytes(ours.read_bytes())
    assert event_files.is_event_file(str(others))
    assert not event_files.is_event_file(str(ours.with_name("model.keras")))
    assert not event_files.is_event_file(str(tmp_path / "events.out.tfevents.gone.gradflow"))


def damaged_in_front(tmp_path: Path, junk: bytes) -> tuple[Path, int]:
    """A file of junk and a whole record, and where that begins."""
    whole = write_log(tmp_path / "log", steps=1).read_bytes()
    path = tmp_path / "file"
    path.write_bytes(bytes(8) + junk + whole)
    return path, 8 + len(junk)


LOOKS_LIKE_ONE = b"\1\0\0\0\0" + b"\0\0\0" + b"abcd" + b"\x09"


def test_what_only_looks_like_a_record_is_passed_over(tmp_path: Path) -> None:
    path, begins = damaged_in_front(tmp_path, LOOKS_LIKE_ONE * 3)

    with path.open("rb") as file:
        assert event_files.next_record(file, 0) == begins


def test_the_search_for_a_record_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = damaged_in_front(tmp_path, LOOKS_LIKE_ONE * 3)
    monkeypatch.setattr(event_files, "_MOST_TRIED", 2)

    with path.open("rb") as file:
        assert event_files.next_record(file, 0) is None


def test_without_a_fast_checksum_a_log_is_read_and_data_are_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_log(tmp_path, steps=1)
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    monkeypatch.setattr(event_files, "_crc32c", in_c())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # of a checksum
    path.write_bytes(content)

    assert tb_gradflow.open_log(tmp_path).steps == (0,)


class Refusing(MultiplexerDataProvider):
    """TensorBoard's Python loader, on a log of ours; `refuse` stands in for what others may answer."""

    def __init__(self, logdir: Path) -> None:
        multiplexer = EventMultiplexer()
        multiplexer.AddRunsFromDirectory(str(logdir))
        multiplexer.Reload()
        super().__init__(multiplexer, str(logdir))
        self.refuse: dict[str, Callable[..., Any]] = {}

    def read_blob(self, *place: Any, **question: Any) -> Any:
        refuse = self.refuse.get("read_blob")
        return super().read_blob(*place, **question) if refuse is None else refuse(*place, **question)

    def read_tensors(self, *place: Any, **question: Any) -> Any:
        refuse = self.refuse.get("read_tensors")
        return super().read_tensors(*place, **question) if refuse is None else refuse(*place, **question)

    def list_tensors(self, *place: Any, **question: Any) -> Any:
        refuse = self.refuse.get("list_tensors")
        return super().list_tensors(*place, **question) if refuse is None else refuse(*place, **question)


def raises(error: Exception) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


class TestOfAProvider:
    @pytest.fixture(autouse=True)
    def _is_not_asked_for_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(providers, "_PAUSE", 0.0)

    def reader(self, tmp_path: Path, *values: Summary.Value) -> tuple[ProviderReader, Refusing]:
        write_log(tmp_path, steps=40)
        if values:
            appended(tmp_path, *values)
        provider = Refusing(tmp_path)
        [run] = list_runs(provider, RequestContext(), "")
        return ProviderReader(provider, RequestContext(), "", run), provider

    def test_the_newest_steps_of_a_run_are_listed(self, tmp_path: Path) -> None:
        _, provider = self.reader(tmp_path)

        [listed] = list_all(provider, RequestContext(), "").values()

        assert Tag("steps", SESSION, 33) in listed.tags

    def test_a_tag_that_is_not_there_has_no_blob(self, tmp_path: Path) -> None:
        reader, _ = self.reader(tmp_path)

        with pytest.raises(KeyError):
            reader.blob(Tag("trace", SESSION, 7))
        assert reader.problems() == ()

    def test_a_tag_holds_one_blob(self, tmp_path: Path) -> None:
        tag = Tag("trace", SESSION, 1)
        two = blob_value(tag, b"one")
        two.tensor.string_val.append(b"two")
        two.tensor.tensor_shape.dim[0].size = 2
        reader, _ = self.reader(tmp_path, two)

        with pytest.raises(DamagedRecord, match="holds 2 blobs, expected one"):
            reader.blob(tag)

    def test_a_refusal_is_told(self, tmp_path: Path) -> None:
        reader, provider = self.reader(tmp_path)
        provider.refuse["read_blob"] = raises(errors.NotFoundError("no such key"))

        with pytest.raises(LogError, match=r"TensorBoard cannot read the run 'gradflow': .*no such key"):
            reader.blob(Tag("trace", SESSION, 0))

    def test_a_name_that_a_loader_cannot_read_is_told_with_what_to_do(self, tmp_path: Path) -> None:
        write_log(tmp_path / "logs" / 'a "quoted" run', steps=1)
        provider = Refusing(tmp_path / "logs")
        [run] = list_runs(provider, RequestContext(), "")
        provider.refuse["read_blob"] = raises(errors.NotFoundError("no such key"))

        with pytest.raises(LogError, match="rename the directory, or start TensorBoard with --load_fast=false"):
            ProviderReader(provider, RequestContext(), "", run).blob(Tag("trace", SESSION, 0))

    def test_of_tensors_that_cannot_be_made_the_others_are_read(self, tmp_path: Path) -> None:
        reader, provider = self.reader(tmp_path)
        bad = Tag("gradients", SESSION, 33)

        def refuse(*place: Any, **question: Any) -> Any:
            if str(bad) in question["run_tag_filter"].tags:
                raise TypeError("unsupported dtype")
            return MultiplexerDataProvider.read_tensors(provider, *place, **question)

        provider.refuse["read_tensors"] = refuse
        found = reader.arrays([Tag("gradients", SESSION, 0), bad])

        assert found[Tag("gradients", SESSION, 0)].shape == (1, 3, 6)
        assert f"damaged log: TensorBoard cannot read {bad} (unsupported dtype)" in found[bad].problem

    def test_numbers_have_the_type_of_their_kind(self, tmp_path: Path) -> None:
        tag = Tag("gradients", SESSION, 77)
        reader, _ = self.reader(tmp_path, float64_value(tag, (1, 3, 6), bytes(144)))

        assert "is of type float64, expected float32" in reader.arrays([tag])[tag].problem

    def test_a_loader_that_never_gets_done_is_an_error(self, tmp_path: Path) -> None:
        reader, provider = self.reader(tmp_path)
        provider.refuse["list_tensors"] = raises(RuntimeError("dictionary changed size during iteration"))

        with pytest.raises(RuntimeError, match="changed size"):
            reader.tags()


def hyperparameters(content: bytes) -> bytes:
    """An event of TensorBoard's own plugin for them."""
    value = Summary.Value(tag="_hparams_/session_start_info")
    value.metadata.plugin_data.plugin_name = "hparams"
    value.metadata.plugin_data.content = content
    value.tensor.ParseFromString(float32_value(COST, (1,), bytes(4)).tensor.SerializeToString())
    return bytes(Event(wall_time=BEGAN, step=0, summary=Summary(value=[value])).SerializeToString())


def test_hyperparameters_are_read_where_they_are_some(tmp_path: Path) -> None:
    started = HParamsPluginData()
    settings = started.session_start_info.hparams
    settings["lr"].number_value, settings["limit"].number_value = 0.1, math.inf
    settings["nothing"].null_value = 0
    for name, records in {
        "good": [b"", hyperparameters(started.SerializeToString())],
        "unreadable": [hyperparameters(b"\xff\xff")],
        "late": [bytes(2**20 + 1), Event(wall_time=1.0).SerializeToString(), hyperparameters(b"")],
        "foreign": [b"\xff_hparams_/session_start_info"],
    }.items():
        file = RecordFile(str(tmp_path / name / "events.out.tfevents.1.host"))
        for record in records:
            file.write(record or Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString())
        file.close()
    (tmp_path / "good" / "events.out.tfevents.2.scalars").write_bytes(np.zeros(100).tobytes())

    assert below(str(tmp_path)) == {"good": {"lr": 0.1, "limit": "inf"}}


def test_tensorboard_tells_the_hyperparameters_that_it_has(tmp_path: Path) -> None:
    started = HParamsPluginData()
    started.session_start_info.hparams["lr"].number_value = 0.1
    for name, content in {"good": started.SerializeToString(), "unreadable": b"\xff\xff"}.items():
        path = write_log(tmp_path / name, steps=1)
        file = RecordFile(str(path.parents[1] / "events.out.tfevents.1.host"))
        file.write(Event(wall_time=BEGAN, file_version="brain.Event:2").SerializeToString())
        file.write(hyperparameters(content))
        file.close()

    assert of_provider(Refusing(tmp_path), RequestContext(), "") == {"good": {"lr": 0.1}}
    assert event_file(tmp_path / "good").exists()
