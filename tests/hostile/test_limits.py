"""What a record may not be, and that the error names the record and the field."""

from __future__ import annotations

import gzip
import json
import math
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.analyse.words.fields import filled
from tb_gradflow.errors import DamagedRecord, LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.serve.runs.heat import NOT_RECORDED, heat
from tb_gradflow.store.chunks import Array, read_head
from tb_gradflow.store.layout import (
    MOST_JSON,
    Tag,
    blob_value,
    event,
    float32_value,
    float64_value,
    pack_json,
    unpack_json,
    version_event,
)
from tests.hostile.mutations import NAME, file_of
from tests.store.samples import BEGAN, session, step, trace

ID = session().id

Json = Any


def log_of(
    log_dir: Path,
    change: Callable[[Json], object] = lambda _: None,
    *,
    shape: tuple[int, ...] = (3, 3, 6),
    spoil: Callable[[Any], object] = lambda _: None,
    table: Callable[[list[float]], object] = lambda _: None,
) -> tb_gradflow.api.Log:
    """A log of three steps whose trace, gradients or table of steps were changed."""
    of_trace = encode(trace())
    change(of_trace)
    gradients = np.frombuffer(b"".join(step(number).gradients for number in range(3)), "<f4").reshape(3, 3, 6).copy()
    spoil(gradients)
    steps = [number for at in range(3) for number in (float(at), BEGAN + at, 0.0, 0.5)]
    table(steps)
    values = [
        blob_value(Tag("session", ID, -1), pack_json(encode(session()))),
        blob_value(Tag("trace", ID, 0), gzip.compress(json.dumps(of_trace).encode())),
        float32_value(Tag("gradients", ID, 0), shape, gradients.tobytes()),
        float32_value(Tag("variables", ID, 0), (3, 2, 4), b"".join(step(number).variables for number in range(3))),
        float64_value(Tag("steps", ID, 0), (3, 4), struct.pack("<12d", *steps)),
    ]
    path = log_dir / "gradflow" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(file_of([version_event(1.0), *(event([value], 0, 1.0) for value in values)]))
    return tb_gradflow.open_log(log_dir)


def put(value: Any, *keys: Any) -> Callable[[Json], object]:
    """Puts a value at a place of the JSON."""

    def change(record: Json) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put(6, "ops", 4, "inputs", 1, "op"), r"Trace.ops\[4\].inputs\[1\].op: .* 6 ops, got 6"),
        (put(5, "ops", 4, "inputs", 1, "op"), r"Trace.ops\[4\].inputs\[1\].op: expected an op before this one"),
        (put(-1, "ops", 4, "inputs", 1, "input"), r"Trace.ops\[4\].inputs\[1\]: expected an input and"),
        (put(2, "ops", 0, "reads"), r"Trace.ops\[0\].reads: expected the index of one of 2 variables, got 2"),
        (put(-1, "ops", 0, "source"), r"Trace.ops\[0\].source: expected the index of one of 1 sources, got -1"),
        (put([-2], "ops", 0, "outputs", 0, "shape"), r"Trace.ops\[0\].outputs\[0\].shape: expected at most 254 sizes"),
        (put([1] * 300, "variables", 0, "shape"), r"Trace.variables\[0\].shape: .*got '300 sizes'"),
        (put(99, "targets", 0, "op"), r"Trace.targets\[0\].op: expected the index of one of 6 ops, got 99"),
        (put(7, "variable_gradients", 1, "variable"), r"Trace.variable_gradients\[1\].variable: .* got 7"),
        (put(10**9, "variable_gradients", 0, "row"), r"Trace.variable_gradients\[0\].row: .* of 1000000 rows"),
        (put(10**30, "tensor_gradients", 0, "op"), r"Trace.tensor_gradients\[0\].op: .*most 64 bits, got one of 100"),
        (put("x" * 200_000, "sources", 0, "code"), r"Trace.sources\[0\].code: .*131072 characters, got 200000"),
        (put(1, "index"), "gradflow/trace/1700000000000/0 holds the trace 1"),
    ],
)  # fmt: skip
def test_a_trace_that_cannot_be_is_refused_by_its_field(
    tmp_path: Path, change: Callable[[Json], object], said: str
) -> None:
    with pytest.raises(LogError, match=said) as refused:
        log_of(tmp_path, change).report()

    assert "gradflow/trace/1700000000000/0" in str(refused.value)


@pytest.mark.parametrize(
    ("blob", "said"),
    [
        (gzip.compress(b"[" * 10**6), "nested too deeply"),
        (gzip.compress(b"1" * 5000), "digits"),
        (gzip.compress(b"[NaN]"), "NaN is not a number in JSON"),
        (gzip.compress(b"[1e999]"), "1e999 is too large"),
        (gzip.compress(b"\xff\xfe"), "codec can't decode"),
        (gzip.compress(b"[]")[:-9], "its end is missing"),
        (gzip.compress(b"[]") + b"x", "there is data after its end"),
        (b"GIF89a", "incorrect header"),
        (gzip.compress(b"[" + b"0," * 11_000_000 + b"0]", 1), "values, expected at most"),
    ],
    # Compressed bytes hold the time, and workers have to agree on the names of tests.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_blob_that_is_no_record_is_refused(blob: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        unpack_json(blob)


def test_a_blob_that_is_small_and_says_that_it_is_huge_takes_no_memory() -> None:
    bomb = gzip.compress(bytes(4 * MOST_JSON), 9)

    tracemalloc.start()
    with pytest.raises(ValueError, match=f"more than {MOST_JSON} bytes"):
        unpack_json(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(bomb) < MOST_JSON / 100
    assert peak < 3 * MOST_JSON


def test_halves_of_surrogate_pairs_become_text_that_can_be_written() -> None:
    assert unpack_json(gzip.compress(b'["\\ud800", "\\ud83d\\ude00"]')) == ["?", "\N{GRINNING FACE}"]


@pytest.mark.parametrize("shape", [(3, 3, 7), (2, 3, 6), (3, 18), (2**40, 0, 6), (-3, -3, 6), (3, 2, 9), (1,) * 9])
def test_numbers_of_another_shape_are_said_to_be_not_measured(tmp_path: Path, shape: tuple[int, ...]) -> None:
    report = log_of(tmp_path, shape=shape).report()

    assert {each.status for each in report.variables.values()} == {"not_measured", "disconnected"}
    assert (
        "Part of the log is damaged and was left out: damaged log: gradflow/gradients/1700000000000/000000000000"
        in str(report).replace("\n", " ")
    )


@pytest.mark.parametrize(
    ("column", "number"), [(0, -1.0), (4, np.inf), (4, -2.0), (5, np.nan), (3, 1.5), (3, np.nan), (1, np.nan)]
)
def test_statistics_that_cannot_be_are_not_measured(tmp_path: Path, column: int, number: float) -> None:
    def spoil(gradients: Any) -> None:
        gradients[1, 0, column] = number

    log = log_of(tmp_path, spoil=spoil)

    assert log.report(1).variables["dense/kernel"].gradient is None
    assert "impossible statistics" in str(log.report(1)).replace("\n", " ")
    before = log.report(0).variables["dense/kernel"].gradient
    assert before is not None
    assert np.isnan(log.history("dense/kernel")["norm"]).tolist() == [False, True, False]
    assert heat(log.recorded, 0, 0, "gradient", 9)[:, 0].tolist() == [0.0, NOT_RECORDED, 2.0]


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [
        (0, 1.0, "expected steps from 0"),
        (4, 0.0, "expected steps that increase"),
        (4, float("nan"), "expected steps from 0"),
        (4, 1e300, "expected steps from 0"),
        (5, float("inf"), "expected seconds since the epoch"),
        (5, 1e12, "expected seconds since the epoch"),
        (6, 1.0, "expected the index of one trace"),
        (6, float("nan"), "expected the index of one trace"),
    ],
)
def test_steps_that_cannot_be_are_left_out_and_said_to_be(tmp_path: Path, place: int, number: float, said: str) -> None:
    log = log_of(tmp_path, table=lambda steps: put(number, place)(steps))

    assert log.steps == ()
    [problem] = log.recorded.damaged
    assert said in problem
    # The structure is there, and speaks.
    assert log.report().variables["step_filter/threshold"].status == "disconnected"


@pytest.mark.parametrize("numbers", [(1.0, 1.0), (math.nan, 1.0), (1.0, math.inf)])
def test_what_is_said_of_very_many_steps_is_short(numbers: tuple[float, float]) -> None:
    table = [each for number in range(100_000) for each in (float(number), 1.7e9, 0.0)]
    table[3 * 50_000 : 3 * 50_000 + 2] = numbers

    with pytest.raises(DamagedRecord) as refused:
        read_head(Tag("steps", ID, 0), Array((100_000, 3), struct.pack("<300000d", *table)))
    assert len(str(refused.value)) < 300


def test_a_session_under_another_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gradflow" / NAME
    path.parent.mkdir()
    value = blob_value(Tag("session", "1600000000000", -1), pack_json(encode(session())))
    path.write_bytes(file_of([version_event(1.0), event([value], 0, 1.0)]))

    with pytest.raises(DamagedRecord, match="gradflow/session/1600000000000 holds the session 1700000000000"):
        tb_gradflow.open_log(tmp_path)


def test_braces_in_the_user_s_code_are_no_places_of_a_message() -> None:
    names = {"they_get": "`w` gets", "x": "p"}

    assert (
        filled("{they_get} nothing: `f({'a': {x}})` {unknown} }", names)
        == "`w` gets nothing: `f({'a': p})` {unknown} }"
    )
    assert filled("{{x}} {x}", names) == "{x} p"
