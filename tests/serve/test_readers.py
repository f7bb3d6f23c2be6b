"""Chunks are read side by side, by threads that stay."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from tb_gradflow.serve.runs.readers import READERS, side_by_side


def test_the_answers_come_in_the_order_of_the_items() -> None:
    together = threading.Barrier(READERS)

    def read(item: int) -> int:
        together.wait(timeout=60)  # each waits for the others: so many are read at once
        return item * 2

    assert side_by_side(read, range(READERS * 2)) == [item * 2 for item in range(READERS * 2)]


def test_the_first_error_is_raised_and_no_more_threads_are_made_than_there_are() -> None:
    def read(item: int) -> str:
        if item == 3:
            raise KeyError("gone")
        return threading.current_thread().name

    with pytest.raises(KeyError, match="gone"):
        side_by_side(read, range(5))
    names = {name for _ in range(5) for name in side_by_side(read, [0, 1, 2] * READERS)}
    assert len(names) <= READERS


def test_a_forked_process_has_threads_of_its_own() -> None:
    side_by_side(abs, [1])
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    child = context.Process(target=lambda: answers.put(side_by_side(abs, [-1, -2])))
    child.start()
    child.join(30)

    assert child.exitcode == 0
    assert answers.get() == [1, 2]
