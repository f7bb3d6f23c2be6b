from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tb_gradflow.record.codec import MalformedRecord, decode, encode
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import Session, Trace
from tests.store.samples import session, trace

st.register_type_strategy(float, st.floats(allow_nan=False))
st.register_type_strategy(int, st.integers(-(2**63) + 1, 2**63 - 1))

# How long a machine takes is no matter of these tests.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@patient
@given(st.one_of(st.from_type(Session), st.from_type(Trace), st.from_type(Diagnosis)))
def test_a_record_survives_the_round_trip(record: object) -> None:
    assert decode(type(record), json.loads(json.dumps(encode(record)))) == record


def test_a_record_becomes_plain_values_under_the_names_of_its_fields() -> None:
    value = encode(trace())

    assert value["ops"][2]["inputs"] == [
        {"op": 1, "output": 0, "input": 0, "passes": "not_differentiable", "carried": False}
    ]
    assert value["variable_gradients"][1]["row"] is None


def damaged(**replaced: Any) -> Any:
    value = encode(trace())
    value["ops"][3].update(replaced)
    return value


def test_an_error_names_the_place() -> None:
    value = encode(trace())
    del value["ops"][3]["type"]
    del value["ops"][3]["reads"]

    with pytest.raises(MalformedRecord, match=r"^Trace\.ops\[3\]: missing type, reads$"):
        decode(Trace, value)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (damaged(name=4), r"^Trace\.ops\[3\]\.name: expected str, got int 4$"),
        (damaged(source=True), r"^Trace\.ops\[3\]\.source: expected int, got bool True$"),
        (damaged(inputs={}), r"^Trace\.ops\[3\]\.inputs: expected a list, got an object$"),
        (damaged(outputs=[None]), r"^Trace\.ops\[3\]\.outputs\[0\]: expected an object, got null$"),
        (damaged(type=None), r"^Trace\.ops\[3\]\.type: expected str, got null$"),
        ([], r"^Trace: expected an object, got a list$"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(value: Any, complaint: str) -> None:
    with pytest.raises(MalformedRecord, match=complaint):
        decode(Trace, value)


def test_a_word_that_is_not_in_the_vocabulary_is_refused() -> None:
    value = encode(trace())
    value["variable_gradients"][0]["outcome"] = "perhaps"

    with pytest.raises(MalformedRecord, match=r"outcome: expected one of value, none, not_asked, error, got 'perhaps'"):
        decode(Trace, value)


def test_keys_that_the_record_does_not_know_are_ignored() -> None:
    assert decode(Session, {**encode(session()), "weather": "fine"}) == session()


@dataclass(frozen=True)
class Grown:
    old: int
    new: tuple[int, ...] = ()


def test_a_field_with_a_default_may_be_missing() -> None:
    assert decode(Grown, {"old": 1}) == Grown(1)
    assert decode(Grown, {"old": 1, "new": [2]}) == Grown(1, (2,))
    with pytest.raises(MalformedRecord, match=r"^Grown: missing old$"):
        decode(Grown, {"new": []})


def test_an_integer_is_a_float_too() -> None:
    assert decode(Diagnosis, diagnosis_with_norm(2)).variables[0].gradient is not None


def diagnosis_with_norm(norm: object) -> Any:
    statistics = {"norm": norm, "max_abs": 1.0, "mean_abs": 1.0, "zero_fraction": 0.0, "nan_count": 0, "inf_count": 0}
    variable = {"name": "v", "status": "connected", "shape": [], "dtype": "float32", "gradient": statistics}
    return {
        "format": 1,
        "step": 0,
        "trace": 0,
        "summary": "",
        "variables": [variable],
        "findings": [],
        "unverified": [],
    }


def test_what_has_no_json_form_is_refused_when_the_codec_meets_its_class() -> None:
    @dataclass(frozen=True)
    class WithBytes:
        blob: bytes

    with pytest.raises(TypeError, match="cannot contain <class 'bytes'>"):
        decode(WithBytes, {"blob": ""})
