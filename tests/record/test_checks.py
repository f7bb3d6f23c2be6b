"""A record whose numbers are impossible is refused where it enters, in words that name the place."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tb_gradflow.errors import DamagedRecord
from tb_gradflow.record import checks
from tb_gradflow.record.codec import MOST_TEXT, encode
from tb_gradflow.record.schema import FORMAT, Session, Trace
from tb_gradflow.record.upgrade import read_session, read_trace, read_values

LOGS = Path(__file__).parents[1] / "hostile" / "logs"

Json = Any
Place = tuple[Any, ...]

# What the program of that log did not do.
MORE: dict[str, Json] = {
    "gradient_checks": [
        {
            "op": 0,
            "function": "doubled",
            "source": 0,
            "inputs": [
                {"input": 0, "shape": [2], "returned_shape": [2], "error_share": None, "ratio": 1.0, "samples": []}
            ],
        }
    ],
    "overrides": [{"type": "Floor", "gradient": "Identity", "source": 0, "used": True}],
    "trials": [{"file": "model.py", "line": 2, "end_line": 3, "after": "x = y", "works": True}],
    "fits": [{"step": 3, "rows": 32, "descents": [{"by": "own", "rate": None, "changed": "nothing", "losses": [1.0]}]}],
    "metrics": [{"name": "accuracy", "right": 0.0, "close": 0.0, "wrong": 0.0}],
    "terms": [
        {"target": 0, "name": "kl", "kind": "term", "op": 0, "source": 0, "row": 0, "trains": True},
    ],
    "term_gradients": [{"term": 0, "variable": 0, "row": 0}],
    "term_cosines": [{"target": 0, "variable": 0, "row": 0}],
    "term_tensors": [{"term": 0, "op": 0, "output": 0, "row": 0}],
    "deferred": [{"variable": 0, "summed": True, "summed_at": 0, "conditional": True, "condition_at": 0}],
    "replaced": [{"variable": 0, "by": 0, "share": 0.5, "at": 0}],
    "ranges": [{"op": 0, "input": 0, "row": 0}],
    "passed": [{"op": 0, "input": 0, "row": 0}],
    "clips": [{"by": "tf.clip_by_norm", "limit": 1.0, "variables": [0], "row": 0, "optimizer": 0, "at": 0}],
    "loss_scales": [{"optimizer": 0, "row": 0}],
    "raised": [{"op": 0, "type": "GatherV2", "source": 0, "api": None, "error": "E: 5", "size": 5.0}],
    "notes": ["steps of this kind are not measured"],
}

MORE_VALUES: dict[str, Json] = {
    "influences": [
        {
            "target": 0,
            "variable": 0,
            "size": 1.0,
            "amount": 0.1,
            "before": 0.5,
            "again": 0.5,
            "after": 0.6,
            "still": 0.01,
        }
    ],
    "not_moved": "it calls Python functions",
    "reactions": [
        {
            "op": 0,
            "target": 0,
            "size": 1.0,
            "amount": 0.1,
            "changed": 0.5,
            "change": 1.0,
            "before": 0.5,
            "after": 0.6,
            "still": 0.01,
        }
    ],
    "line_searches": [
        {"target": 0, "before": 0.5, "again": 0.5, "factors": [0.1, 1.0], "losses": [0.4, 0.6], "rate": 0.01}
    ],
    "interventions": [
        {
            "target": 0,
            "op": 0,
            "input": 0,
            "factor": 1.0,
            "added": 0.1,
            "rows": [0],
            "copied": 0,
            "before": 0.5,
            "after": 0.6,
            "gradients": [{"variable": 0, "before": 0.0, "was_broken": 1, "after": 1.0, "broken": 0}],
        }
    ],
    "weights": [{"variable": 0, "norm": 1.0, "sum": -0.5}],
    "data_rows": [{"row": 2, "index": 515, "equal": 1}],
    "kept_numbers": [{"name": "self.beta", "file": "train.py", "line": 3, "kept": 0.0, "now": 0.5}],
    "spike": {
        "target": 0,
        "of": "loss",
        "loss": 50.0,
        "usual_loss": 0.5,
        "norm": 20.0,
        "usual_norm": 1.0,
        "highest": 0.9,
        "limit": 5.0,
        "steps": 512,
        "losses": [0.5],
        "norms": [1.0],
        "draws": False,
        "earlier": 3,
        "trials": [{"changed": "rows", "loss": 0.4, "norm": 1.0, "rows": [7], "copied": 6}],
        "moved": [{"variable": 0, "size": 1.0, "change": 0.1, "largest": 0.05, "count": 8}],
        "rates": [0.01, 0.01],
    },
    "slopes": [
        {
            "target": 0,
            "variable": 0,
            "along": "random",
            "size": 1.0,
            "amount": 0.1,
            "before": 0.5,
            "again": 0.5,
            "ahead": 0.6,
            "behind": 0.4,
            "predicted": 0.1,
        }
    ],
}

# Integers of a trace that do not index anything in it, and have no upper limit.
WITHOUT_LIMIT = {
    "index",
    "ops.*.outputs.*.shape.*",
    "ops.*.given.*.shape.*",
    "variables.*.shape.*",
    "targets.*.sources",
    "gradient_checks.*.inputs.*.shape.*",
    "gradient_checks.*.inputs.*.returned_shape.*",
    "gradient_checks.*.inputs.*.input",
    "sources.*.line",
    "optimizers.*.accumulates",
    "passages.*.line",
    "trials.*.end_line",
    "fits.*.step",
    "fits.*.rows",
}


@functools.cache
def recorded() -> tuple[Json, Json, Trace]:
    """A trace with every kind of record, and the forward values of one of its steps."""
    history = tb_gradflow.open_log(LOGS / "trained").recorded
    index = history.index()
    step = min(index.with_values)
    found = index.find(step)
    assert found is not None
    trace = history.trace(index.session.id, found[0].trace)
    values = history.values(index.session.id, step, trace)
    assert values is not None
    return {**encode(trace), **MORE}, {**encode(values), **MORE_VALUES}, trace


def integers_in(value: Json, path: Place = ()) -> Iterator[Place]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from integers_in(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from integers_in(each, (*path, number))
    elif type(value) is int:
        yield path


def one_of_each(value: Json) -> dict[str, Place]:
    """Where the first integer of each field is."""
    found: dict[str, Place] = {}
    for path in integers_in(value):
        found.setdefault(".".join("*" if isinstance(each, int) else each for each in path), path)
    return found


def changed(value: Json, path: Place, new: Json) -> Json:
    value = copy.deepcopy(value)
    place = value
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = new
    return value


def named(path: Place) -> str:
    """As an error names it; a size is named with its shape."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)


def test_the_record_has_every_field_of_every_kind() -> None:
    trace, values, _ = recorded()

    assert [name for name, value in {**trace, **values}.items() if value == []] == []
    assert read_trace(trace, FORMAT).terms


@pytest.mark.parametrize("field", one_of_each(recorded()[0]))
def test_no_number_of_a_trace_may_be_less_than_none(field: str) -> None:
    trace, _, _ = recorded()
    path = one_of_each(trace)[field]

    with pytest.raises(DamagedRecord) as refused:
        read_trace(changed(trace, path, -7), FORMAT)

    at = path[:-1] if field.endswith((".input", ".output", "shape.*")) else path
    assert f"Trace{named(at)}" in str(refused.value)
    assert "-7" in str(refused.value)


@pytest.mark.parametrize("field", sorted(set(one_of_each(recorded()[0])) - WITHOUT_LIMIT))
def test_no_index_of_a_trace_may_lie_beyond_what_it_names(field: str) -> None:
    trace, _, _ = recorded()
    path = one_of_each(trace)[field]

    with pytest.raises(DamagedRecord, match=r"damaged log: Trace"):
        read_trace(changed(trace, path, 10**12), FORMAT)


@pytest.mark.parametrize("field", sorted(WITHOUT_LIMIT))
def test_other_numbers_may_be_large(field: str) -> None:
    trace, _, _ = recorded()

    read_trace(changed(trace, one_of_each(trace)[field], 10**12), FORMAT)


@pytest.mark.parametrize("field", sorted(set(one_of_each(recorded()[1])) - {"step"}))
def test_no_number_of_a_forward_pass_may_be_less_than_none(field: str) -> None:
    _, values, trace = recorded()

    with pytest.raises(DamagedRecord, match=r"damaged log: StepValues\.[a-z]"):
        read_values(changed(values, one_of_each(values)[field], -7), trace)


@pytest.mark.parametrize(
    "field",
    [
        *("values.*.op", "gradient_rows.*.op", "gradient_rows.*.target"),
        *("influences.*.target", "influences.*.variable", "line_searches.*.target"),
        *("reactions.*.op", "reactions.*.target", "slopes.*.target", "slopes.*.variable"),
        *("weights.*.variable", "spike.target", "spike.moved.*.variable"),
        *("interventions.*.target", "interventions.*.op", "interventions.*.gradients.*.variable"),
    ],
)
def test_no_index_of_a_forward_pass_may_lie_beyond_its_trace(field: str) -> None:
    _, values, trace = recorded()

    with pytest.raises(DamagedRecord, match=r"expected a number from 0 to \d+, got 1000000"):
        read_values(changed(values, one_of_each(values)[field], 10**6), trace)


def test_a_value_is_that_of_an_output_or_of_an_input() -> None:
    _, values, trace = recorded()
    both = changed(values, ("values", 0), {**values["values"][0], "output": 0, "input": 0})

    with pytest.raises(DamagedRecord, match="expected an output or an input, got 'output 0 and input 0'"):
        read_values(both, trace)


def test_what_names_something_where_nothing_is_says_so() -> None:
    _, values, trace = recorded()
    empty = {**encode(trace), **{name: [] for name in encode(trace) if name not in ("index", "whole", "failure")}}

    with pytest.raises(DamagedRecord, match="expected none, as there is nothing to name, got 0"):
        read_values(changed(values, ("values", 0, "op"), 0), read_trace({**empty, "unscaled": False}, FORMAT))


def test_an_op_reads_what_was_computed_before_it_or_in_an_earlier_iteration() -> None:
    trace, _, _ = recorded()
    path = one_of_each(trace)["ops.*.inputs.*.op"]
    ahead = changed(changed(trace, path, path[1]), (*path[:-1], "carried"), False)

    with pytest.raises(DamagedRecord, match="expected an op before this one, as no iteration carries the value"):
        read_trace(ahead, FORMAT)
    read_trace(changed(ahead, (*path[:-1], "carried"), True), FORMAT)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([2**31, 2**31, 2**31], "at most 4611686018427387904 elements"),
        ([1] * 255, "at most 254 sizes from -1, got '255 sizes'"),
        ([2, -2], r"at most 254 sizes from -1, got \(2, -2\)"),
    ],
)
def test_a_shape_is_one_that_tensorflow_could_have(shape: list[int], said: str) -> None:
    trace, _, _ = recorded()

    with pytest.raises(DamagedRecord, match=rf"Trace\.variables\[0\]\.shape: expected {said}"):
        read_trace(changed(trace, ("variables", 0, "shape"), shape), FORMAT)


def test_a_list_of_rows_is_counted_in_whole() -> None:
    _, values, trace = recorded()
    path = one_of_each(values)["values.*.rows.count"]

    with pytest.raises(DamagedRecord, match=r"rows\.count: expected at least the \d+ that are listed, got 0"):
        read_values(changed(values, path, 0), trace)


@pytest.mark.parametrize("part", [("sources", 0, "code"), ("passages", 0, "text"), ("trials", 0, "after")])
def test_a_line_of_code_has_a_length_that_somebody_could_have_written(part: Place) -> None:
    trace, _, _ = recorded()

    with pytest.raises(DamagedRecord, match=rf"expected at most {MOST_TEXT} characters, got {MOST_TEXT + 1}"):
        read_trace(changed(trace, part, "x" * (MOST_TEXT + 1)), FORMAT)


def test_a_trace_holds_no_more_code_than_a_recorder_keeps() -> None:
    trace, _, _ = recorded()
    long = {**trace["passages"][0], "text": "x" * MOST_TEXT}

    with pytest.raises(DamagedRecord, match=rf"Trace\.passages: expected at most {checks.MOST_CODE} characters"):
        read_trace({**trace, "passages": [long] * 5}, FORMAT)


def test_a_trace_has_no_more_ops_than_anybody_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, _, _ = recorded()
    monkeypatch.setattr(checks, "MOST_OPS", len(trace["ops"]) - 1)

    with pytest.raises(DamagedRecord, match=rf"Trace\.ops: expected at most {len(trace['ops']) - 1}, got"):
        read_trace(trace, FORMAT)


@pytest.mark.parametrize(
    "id", ["", "170000000000", "17000000000000", "170000000000x", "\uff11700000000000", "1700000000000\n"]
)
def test_the_id_of_a_session_is_thirteen_digits(id: str) -> None:
    session = encode(Session(FORMAT, "1700000000000", "0.1.0", "2.21.0", "3.15.0", "model", ()))

    assert read_session(session).id == "1700000000000"
    with pytest.raises(DamagedRecord, match=r"Session\.id: expected thirteen digits"):
        read_session({**session, "id": id})


def test_no_text_is_longer_than_somebody_could_read() -> None:
    """Names go through code that takes as much time and memory as the square of their length."""
    trace, _, _ = recorded()
    place = ("variables", 0, "name")

    read_trace(changed(trace, place, "x" * MOST_TEXT), FORMAT)
    with pytest.raises(
        DamagedRecord,
        match=rf"Trace\.variables\[0\]\.name: expected at most {MOST_TEXT} characters, got {MOST_TEXT + 1}",
    ):
        read_trace(changed(trace, place, "x" * (MOST_TEXT + 1)), FORMAT)


@pytest.mark.parametrize("place", [("ops", 0, "name"), ("variables", 0, "name"), ("layers", 0, "scope")])
def test_no_op_is_inside_very_many_scopes(place: Place) -> None:
    trace, _, _ = recorded()

    read_trace(changed(trace, place, "a/" * checks.MOST_SCOPES), FORMAT)
    with pytest.raises(DamagedRecord, match=r"expected at most 1000 scopes, got 1001"):
        read_trace(changed(trace, place, "a/" * (checks.MOST_SCOPES + 1)), FORMAT)


def test_many_names_are_expected_but_not_many_patterns() -> None:
    known = encode(Session(FORMAT, "1700000000000", "", "", "", "", ()))

    assert len(read_session({**known, "expected": ["teacher/kernel"] * 20_000}).expected) == 20_000
    read_session({**known, "expected": ["*"] * checks.MOST_PATTERNS})
    with pytest.raises(DamagedRecord, match=r"Session\.expected: expected at most 1000 patterns, got 1001"):
        read_session({**known, "expected": ["*"] * (checks.MOST_PATTERNS + 1)})
