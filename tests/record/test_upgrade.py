from __future__ import annotations

from typing import Any

import pytest

from tb_gradflow.errors import LogError, NewerLogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.record.upgrade import UPGRADERS, Upgrader, read_session, read_trace
from tests.store.samples import session, trace


def test_every_format_but_the_newest_has_an_upgrader() -> None:
    assert len(UPGRADERS) == FORMAT - 1


def test_a_session_and_a_trace_of_todays_format_are_read_as_they_are() -> None:
    assert read_session(encode(session())) == session()
    assert read_trace(encode(trace()), FORMAT) == trace()


def test_a_log_of_a_newer_version_says_what_to_do() -> None:
    value = {"format": FORMAT + 98, "anything": "else"}

    with pytest.raises(NewerLogError, match=rf"log has format {FORMAT + 98}, this tb-gradflow reads up to {FORMAT}: "):
        read_session(value)


@pytest.mark.parametrize("value", [None, [], {}, {"format": "1"}, {"format": True}, {"format": 0}])
def test_something_else_is_not_taken_for_a_log(value: Any) -> None:
    with pytest.raises(LogError, match="not a log of tb-gradflow"):
        read_session(value)


def test_a_damaged_record_is_a_log_error_that_names_the_place() -> None:
    with pytest.raises(LogError, match=r"damaged log: Session: missing .*tensorflow"):
        read_session({"format": FORMAT})
    with pytest.raises(LogError, match=r"damaged log: Trace: missing .*ops"):
        read_trace({"index": 0}, FORMAT)


def test_upgraders_are_applied_from_the_written_format_on() -> None:
    def renames(old: str, new: str) -> Upgrader:
        def rename(value: Any) -> Any:
            return {(new if key == old else key): each for key, each in value.items()}

        return Upgrader(session=rename, trace=rename)

    upgraders = (renames("a", "b"), renames("b", "index"))
    first = {("a" if key == "index" else key): each for key, each in encode(trace()).items()}
    second = {("b" if key == "index" else key): each for key, each in encode(trace()).items()}

    assert read_trace(first, 1, upgraders) == trace()
    assert read_trace(second, 2, upgraders) == trace()
