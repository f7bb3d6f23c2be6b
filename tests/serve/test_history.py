from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tb_gradflow
from tb_gradflow.errors import LogError, NewerLogError
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.runs.cache import Cache
from tb_gradflow.store.collecting import without_collections
from tests.store.samples import open_writer, session, step, trace, write_log


def test_a_log_tells_its_steps_and_the_report_of_each(tmp_path: Path) -> None:
    write_log(tmp_path, steps=3)

    log = tb_gradflow.open_log(tmp_path)

    assert log.steps == (0, 1, 2)
    assert log.report().step == 2
    first = log.report(step=0)
    assert first.step == 0
    assert first.variables["step_filter/threshold"].status == "disconnected"
    assert [finding.op.type for finding in first.findings if finding.op] == ["Less"]
    assert str(tmp_path) in str(first)


def test_a_log_opens_by_its_own_directory_too(tmp_path: Path) -> None:
    write_log(tmp_path)

    assert tb_gradflow.open_log(str(tmp_path / "gradflow")).steps == (0, 1, 2)


def test_the_history_of_a_variable_has_one_row_a_step(tmp_path: Path) -> None:
    write_log(tmp_path, steps=40)

    history = tb_gradflow.open_log(tmp_path).history("dense/kernel")

    assert history["step"].tolist() == list(range(40))
    assert history["norm"].tolist() == [float(number) for number in range(40)]
    assert history["weight_norm"].tolist() == [1.0 + number for number in range(40)]
    assert history["update_norm"].tolist() == [0.125] * 40
    assert {len(values) for values in history.values()} == {40}


def test_a_variable_without_gradient_has_a_history_of_its_value_alone(tmp_path: Path) -> None:
    write_log(tmp_path, steps=2)

    history = tb_gradflow.open_log(tmp_path).history("step_filter/threshold")

    assert np.isnan(history["norm"]).all()
    assert history["weight_norm"].tolist() == [2.0, 3.0]


def test_a_history_follows_the_variable_through_traces_that_number_it_otherwise(tmp_path: Path) -> None:
    first = trace()
    second = replace(
        trace(1),
        variables=first.variables[::-1],
        variable_gradients=(replace(first.variable_gradients[0], variable=1, row=2),),
    )
    with open_writer(tmp_path) as writer:
        writer.write_trace(first)
        writer.write_step(step(0, trace=0))
        writer.write_trace(second)
        writer.write_step(step(1, trace=1))

    history = tb_gradflow.open_log(tmp_path).history("dense/kernel")

    assert history["norm"].tolist() == [0.0, 1.0 + 2]
    assert history["weight_norm"].tolist() == [1.0, 3.0]


def test_an_unknown_variable_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    write_log(tmp_path)

    with pytest.raises(LogError, match=r"no variable 'dense': it has dense/kernel, step_filter/threshold"):
        tb_gradflow.open_log(tmp_path).history("dense")


def test_a_step_that_was_not_recorded_is_answered_with_the_nearest(tmp_path: Path) -> None:
    write_log(tmp_path, steps=3)

    with pytest.raises(LogError, match=r"step 50 was not recorded: the log has 3 steps from 0 to 2; the nearest is 2"):
        tb_gradflow.open_log(tmp_path).report(step=50)


def test_a_running_training_grows_under_an_open_log(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        log = tb_gradflow.open_log(tmp_path)
        before = (log.steps, log.report().step)

        writer.write_step(step(0))

        assert before == ((), -1)
        assert (log.steps, log.report().step) == ((0,), 0)


def test_several_runs_are_named_so_that_one_can_be_opened(tmp_path: Path) -> None:
    write_log(tmp_path / "a")
    write_log(tmp_path / "b")

    with pytest.raises(LogError, match=rf"contains 2 runs: open one of them\n  {tmp_path}/a/gradflow\n  {tmp_path}/b"):
        tb_gradflow.open_log(tmp_path)


def test_a_log_that_cannot_be_read_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    open_writer(tmp_path / "newer", session(format=FORMAT + 98)).close()
    open_writer(tmp_path / "empty").close()

    with pytest.raises(NewerLogError):
        tb_gradflow.open_log(tmp_path / "newer")
    with pytest.raises(LogError, match="does not exist"):
        tb_gradflow.open_log(tmp_path / "nowhere")
    with pytest.raises(LogError, match="nothing has been recorded yet"):
        tb_gradflow.open_log(tmp_path / "empty").report()


def test_a_cache_drops_what_was_used_longest_ago() -> None:
    made = []
    cache: Cache[bytes] = Cache(10, cost=len)

    def make(key: str) -> bytes:
        made.append(key)
        return b"1234"

    for key in ("a", "b", "a", "c", "a", "b"):
        cache.get(key, partial(make, key))

    assert made == ["a", "b", "c", "b"]


def test_a_cache_makes_a_thing_once_for_two_that_want_it_at_once() -> None:
    made = []
    cache: Cache[str] = Cache(10)

    def make() -> str:
        time.sleep(0.05)
        made.append(1)
        return "thing"

    threads = [threading.Thread(target=cache.get, args=("key", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 1


def test_nobody_searches_for_cycles_until_the_last_trace_is_decoded() -> None:
    with without_collections():
        with without_collections():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()

    with pytest.raises(LogError), without_collections():
        raise LogError("damaged")
    assert gc.isenabled()


def test_a_cache_does_not_remember_failure() -> None:
    cache: Cache[str] = Cache(10)

    with pytest.raises(ZeroDivisionError):
        cache.get("key", lambda: str(1 // 0))

    assert cache.get("key", lambda: "good") == "good"
