"""A training that was interrupted and resumed into the same directory is one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tb_gradflow.api import open_log
from tb_gradflow.record.schema import FORMAT, OpValue, StepValues, Trace
from tb_gradflow.serve.reports.excerpt import excerpt
from tb_gradflow.serve.runs.history import History
from tb_gradflow.store.layout import Tag
from tests.store.samples import open_writer, session, step, trace
from tests.trace.kills import LOADERS, by_directory

BEGAN = 1_700_000_000_000


def part(log_dir: Path, began: int, steps: Sequence[int], of: Trace | None = None, values: Sequence[int] = ()) -> None:
    """A session that began so many seconds after the first one, and recorded a step each second."""
    with open_writer(log_dir, session(BEGAN + began * 1000)) as writer:
        writer.write_trace(of or trace())
        for second, number in enumerate(steps):
            measured = StepValues(number, 512, (OpValue(1, 0, -1, (4,), -2.5, 1.0, 0, 0, 0, 0, 0),))
            record = replace(step(number), wall_time=BEGAN / 1000 + began + second)
            writer.write_step(replace(record, values=measured) if number in values else record)


@pytest.mark.parametrize("read", LOADERS)
def test_a_later_part_replaces_steps_from_its_first_one_on(tmp_path: Path, read: type) -> None:
    """The chunk in which the later part begins is cut; each step keeps its own numbers."""
    part(tmp_path, 0, range(70))
    part(tmp_path, 100, range(50, 90))

    run = read(tmp_path)

    index = run.index()
    assert index.steps == tuple(range(90))
    assert index.earlier == 0
    assert index.session.id == f"{BEGAN + 100_000}"
    for head in index.chunks:
        numbers = [step(number) for number in head.steps]
        gradients, variables = run.gradients(index.session.id, head.id), run.variables(index.session.id, head.id)
        assert gradients.data == b"".join(each.gradients for each in numbers)
        assert gradients.shape == (len(numbers), 3, 6)
        assert variables.data == b"".join(each.variables for each in numbers)
    tags = [Tag(kind, index.session.id, head.id) for head in index.chunks for kind in ("gradients", "variables")]
    ahead = run.read_ahead(tags)
    assert {tag: ahead[tag].shape[0] for tag in tags} == {
        tag: len(head.steps) for head in index.chunks for tag in tags if tag.number == head.id
    }


def test_each_part_has_its_own_trace(tmp_path: Path) -> None:
    """The model may have changed in between; the newest part's traces keep their numbers."""
    part(tmp_path, 0, range(4), trace(step_filter="first/threshold"))
    part(tmp_path, 50, range(4, 6), trace(step_filter="second/threshold"))
    part(tmp_path, 100, range(6, 8))

    run = by_directory(tmp_path)

    index = run.index()
    first, second, newest = index.traces
    names = {number: run.trace(index.session.id, number).variables[1].name for number in index.traces}
    assert names == {first: "first/threshold", second: "second/threshold", newest: "step_filter/threshold"}
    assert newest == 0
    assert [head.trace for head in index.chunks for _ in head.steps] == [first] * 4 + [second] * 2 + [newest] * 2
    assert run.trace(index.session.id, first).index == first
    with pytest.raises(KeyError):
        run.trace(index.session.id, 3 * first)


def test_numbers_are_found_before_the_index_was_read(tmp_path: Path) -> None:
    """As when TensorBoard was restarted, and a page requests what it knows of."""
    part(tmp_path, 0, range(4))
    part(tmp_path, 100, range(2, 6))

    assert by_directory(tmp_path).gradients(f"{BEGAN + 100_000}", 1).shape[0] == 1


def test_a_training_from_step_zero_replaces_what_was_there(tmp_path: Path) -> None:
    part(tmp_path, 0, range(70))
    part(tmp_path, 100, range(5))

    index = by_directory(tmp_path).index()

    assert index.steps == tuple(range(5))
    assert index.traces == (0,)
    assert index.earlier == 1


def test_what_was_replaced_once_does_not_come_back(tmp_path: Path) -> None:
    part(tmp_path, 0, range(70))
    part(tmp_path, 100, range(5))
    part(tmp_path, 200, range(3, 9))

    index = by_directory(tmp_path).index()

    assert index.steps == tuple(range(9))
    assert index.chunks[0].wall_times[0] == BEGAN / 1000 + 100
    assert index.earlier == 1


def test_trainings_at_the_same_time_are_not_one(tmp_path: Path) -> None:
    part(tmp_path, 0, range(0, 100, 2))
    part(tmp_path, 5, range(1, 100, 2))

    index = by_directory(tmp_path).index()

    assert index.steps == tuple(range(1, 100, 2))
    assert index.earlier == 1


def test_an_earlier_part_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with open_writer(tmp_path, session(BEGAN, format=FORMAT + 1)) as writer:
        writer.write_trace(trace())
        writer.write_step(step(0))
    part(tmp_path, 100, range(4, 6))

    log = open_log(tmp_path)

    assert log.steps == (4, 5)
    assert "an earlier recording" in str(log.report()).replace("\n", " ")


def test_values_of_replaced_steps_are_gone(tmp_path: Path) -> None:
    part(tmp_path, 0, range(6), values=(1, 4))
    part(tmp_path, 100, range(3, 6), values=(5,))

    run = by_directory(tmp_path)

    index = run.index()
    assert index.with_values == {1, 5}
    assert [run.values(index.session.id, number, trace()).step for number in (1, 5)] == [1, 5]


def test_reports_and_pages_have_the_steps_of_both_parts(tmp_path: Path) -> None:
    """Two parts with the same trace, which is decoded for each under its number."""
    part(tmp_path, 0, range(6))
    part(tmp_path, 100, range(6, 9))

    log = open_log(tmp_path)

    history: History = log.recorded
    index = history.index()
    assert [log.report(number).diagnosis.trace for number in (2, 7)] == [index.traces[0], 0]
    assert list(log.history("dense/kernel")["norm"]) == [float(number) for number in range(9)]
    assert list(history.series(1)[:, 0]) == [number + 1.0 for number in range(9)]
    page = excerpt(history, "run", room=10**6).content
    assert page["overview"]["steps"] == list(range(9))
    assert list(page["traces"]) == [str(number) for number in index.traces]
