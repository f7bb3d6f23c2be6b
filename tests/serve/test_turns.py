"""Turns, shared answers and the pace of requests: who is let in when, and that no place is ever lost."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tb_gradflow.serve.turns import Answers, NotWanted, Pace, TooMany, Turns


def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def wait_to_be(turns: Turns, count: int) -> bool:
    return len(turns._waiting) == count


class Work:
    """Begins when it has its turn, and ends when it may."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.may_end = threading.Semaphore(0)
        self.now = self.most = 0
        self._lock = threading.Lock()

    def do(self, turns: Turns, number: int, is_wanted: Callable[[], bool] = lambda: True) -> int:
        with turns.turn(is_wanted):
            with self._lock:
                self.begun.append(number)
                self.now += 1
                self.most = max(self.most, self.now)
            self.may_end.acquire()
            with self._lock:
                self.now -= 1
        return number


def have_come(work: Work, turns: Turns, count: int) -> bool:
    return len(work.begun) + len(turns._waiting) == count


def all_done(turns: Turns) -> Work:
    """The work of twenty that came one after the other, while none that began could end."""
    work = Work()
    with ThreadPoolExecutor(20) as pool:
        for number in range(20):
            pool.submit(work.do, turns, number)
            until(functools.partial(have_come, work, turns, number + 1))
        work.may_end.release(20)
    return work


def test_no_more_are_worked_on_than_may_be() -> None:
    work = all_done(Turns(at_once=2, crowd=100))

    assert work.most == 2
    assert set(work.begun[:2]) == {0, 1}
    assert sorted(work.begun) == list(range(20))


def test_those_who_wait_keep_their_order() -> None:
    # Of two that are let in at once, which is first to say so is chance.
    work = all_done(Turns(at_once=1, crowd=100))

    assert work.begun == list(range(20))


def test_a_crowd_is_worked_on_one_by_one() -> None:
    turns, work = Turns(at_once=3, crowd=4, rest=0.0), Work()
    with ThreadPoolExecutor(30) as pool:
        begun = [pool.submit(work.do, turns, number) for number in range(30)]
        until(lambda: len(turns._waiting) == 27)
        work.may_end.release(3)
        until(lambda: len(work.begun) == 4)
        work.most = 0

        work.may_end.release(20)
        until(lambda: len(work.begun) == 24)
        assert work.most == 1

        work.may_end.release(20)

    assert sorted(future.result() for future in begun) == list(range(30))


def test_a_client_that_goes_away_while_it_waits_takes_no_place() -> None:
    turns, work, is_there = Turns(at_once=1), Work(), threading.Event()
    is_there.set()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(work.do, turns, 0)
        until(lambda: work.begun == [0])
        gone = pool.submit(work.do, turns, 1, is_there.is_set)
        until(lambda: len(turns._waiting) == 1)
        last = pool.submit(work.do, turns, 2)

        is_there.clear()
        with pytest.raises(NotWanted):
            gone.result(20)
        work.may_end.release(2)

        assert (first.result(20), last.result(20)) == (0, 2)
    assert work.begun == [0, 2]


def test_an_error_in_the_work_frees_the_place_and_reaches_all_who_asked() -> None:
    answers: Answers[str] = Answers(1000, len, Turns(at_once=1))
    may_fail, made = threading.Event(), []

    def fails() -> str:
        made.append(1)
        may_fail.wait()
        raise ValueError("no")

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(answers.made, "question", fails) for _ in range(8)]
        until(lambda: "question" in answers._running and len(answers._running["question"].wanted) == 8)
        may_fail.set()

        assert [str(future.exception(20)) for future in asked] == ["no"] * 8
    assert len(made) == 1
    assert answers.made("question", lambda: "yes") == "yes"


def test_what_many_ask_at_once_is_made_once_and_what_is_kept_is_not_made_again() -> None:
    answers: Answers[str] = Answers(1000, len, Turns(at_once=1))
    may_end, made = threading.Event(), []

    def make() -> str:
        made.append(1)
        may_end.wait()
        return "answer"

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(answers.kept, "question", make) for _ in range(8)]
        until(lambda: "question" in answers._running and len(answers._running["question"].wanted) == 8)
        may_end.set()
        assert [future.result(20) for future in asked] == ["answer"] * 8

    assert answers.kept("question", make) == "answer"
    assert len(made) == 1
    answers.made("question", make)
    assert len(made) == 2, "what may be another one the next time is made anew"


def test_a_question_is_worked_on_while_any_of_those_who_asked_are_there() -> None:
    """The first of them goes; the others have asked the same, and get their answer from its turn."""
    turns = Turns(at_once=1)
    answers: Answers[str] = Answers(1000, len, turns)
    work, first_is_there = Work(), threading.Event()
    first_is_there.set()
    with ThreadPoolExecutor(4) as pool:
        pool.submit(work.do, turns, 0)
        until(lambda: work.begun == [0])
        first = pool.submit(answers.made, "question", lambda: "answer", first_is_there.is_set)
        until(lambda: "question" in answers._running)
        second = pool.submit(answers.made, "question", lambda: "another", lambda: True)
        until(lambda: len(answers._running["question"].wanted) == 2)
        first_is_there.clear()
        work.may_end.release()

        assert first.result(20) == second.result(20) == "answer"


def test_a_question_whose_askers_have_all_gone_is_not_worked_on() -> None:
    answers: Answers[str] = Answers(1000, len)

    with pytest.raises(NotWanted):
        answers.made("question", lambda: pytest.fail("worked on"), lambda: False)

    assert answers.made("question", lambda: "answer") == "answer"


def test_threads_give_way_more_often_during_a_turn_and_as_before_after_it() -> None:
    before, turns = sys.getswitchinterval(), Turns(at_once=2)
    inside = []
    with turns.turn(), turns.turn():
        inside.append(sys.getswitchinterval())
    with pytest.raises(ValueError, match="no"), turns.turn():
        raise ValueError("no")

    assert inside[0] < before == sys.getswitchinterval()


def test_a_burst_passes_at_once_and_what_comes_after_it_waits_its_time() -> None:
    pace = Pace(burst=10, per_second=1.0, longest=5.0)
    for _ in range(10):
        pace.keep()
    assert pace._next <= time.monotonic(), "a burst does not wait"

    pace._next += 4.5
    with pytest.raises(TooMany, match="try again"):
        pace.keep()
    assert pace._next - time.monotonic() <= 5.0, "one that is refused counts for nothing"


def test_a_thousand_askers_who_come_and_go_leave_every_place_free() -> None:
    turns = Turns(at_once=2, crowd=5, rest=0.01)
    answers: Answers[int] = Answers(50, lambda answer: 1, turns)

    def ask(number: int) -> int | None:
        def make() -> int:
            time.sleep(0.0005)
            if number % 7 == 0:
                raise ValueError("no")
            return number % 50

        try:
            ask = answers.kept if number % 3 else answers.made
            return ask(number % 50, make, lambda: number % 11 != 0)
        except (NotWanted, ValueError):
            return None

    with ThreadPoolExecutor(40) as pool:
        answered = list(pool.map(ask, range(1000)))

    assert all(answer is None or answer == number % 50 for number, answer in enumerate(answered))
    assert (turns._working, len(turns._waiting), answers._running) == (0, 0, {})
