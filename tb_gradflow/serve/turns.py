"""Decides which requests are processed: a few at a time, in the order of arrival, and identical requests once.

TensorBoard answers each request in its own thread, and Python runs one thread at a time. If all requests to this plugin
were processed at once, a request of another tab would get only a small share of the time.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from tb_gradflow.serve.runs.cache import Cache
from tb_gradflow.serve.runs.giving_way import GIVING_WAY

Answer = TypeVar("Answer")

AT_ONCE = 3
"""The limit without load: the first requests of a page mostly wait for TensorBoard's loader."""

CROWD = 6
"""More waiting requests than one browser sends at once. Above this, one is processed at a time, with pauses."""

REST = 1.0
"""Under load, the pause before the next request, as a share of the time that the previous one took. It leaves the
interpreter to other tabs."""
LONGEST_REST = 0.2

BURST, PER_SECOND = 100, 60.0
"""Even a cached response costs TensorBoard the time to read and send it. A page sends ten requests when it is opened,
and a few each time that its slider moves."""

LONGEST_WAIT = 20.0

LOOK_AGAIN = 0.5
"""Interval in seconds at which a waiting request checks whether its client is still connected."""


class TooMany(Exception):
    """Too many requests are waiting, so the response would come too late."""


class NotWanted(Exception):
    """No client waits for the answer any more."""


def always() -> bool:
    """For an answer that is needed in any case."""
    return True


class Pace:
    """A rate limit: lets a burst pass, and after it a fixed number of requests a second. Each of the others waits for
    its own slot."""

    def __init__(self, burst: int = BURST, per_second: float = PER_SECOND, longest: float = LONGEST_WAIT) -> None:
        self._burst = burst / per_second
        self._between = 1.0 / per_second
        self._longest = longest
        self._next = 0.0
        self._lock = threading.Lock()

    def keep(self) -> None:
        """Waits for the next slot. Raises TooMany, and takes no slot, if the wait would be too long."""
        now = time.monotonic()
        with self._lock:
            mine = max(self._next, now - self._burst) + self._between
            if mine - now > self._longest:
                raise TooMany(f"more than {self._longest:.0f} s of requests are already waiting: try again in a moment")
            self._next = mine
        time.sleep(max(0.0, mine - now))


class Turns:
    """Lets a few requests run at a time; others wait, and run in the order of arrival."""

    def __init__(self, at_once: int = AT_ONCE, crowd: int = CROWD, rest: float = REST) -> None:
        self._at_once = at_once
        self._crowd = crowd
        self._rest = rest
        self._working = 0
        self._waiting: deque[threading.Event] = deque()
        self._rested = 0.0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def turn(self, is_wanted: Callable[[], bool] = always) -> Iterator[None]:
        """Waits for a turn, and holds it while the context is open. Raises NotWanted, and takes no turn, if the answer
        is no longer wanted."""
        self._wait(is_wanted)
        took = 0.0
        try:
            time.sleep(max(0.0, min(self._rested - time.monotonic(), LONGEST_REST)))
            if not is_wanted():
                raise NotWanted
            began = time.monotonic()
            try:
                with GIVING_WAY:
                    yield
            finally:
                took = time.monotonic() - began
        finally:
            self._leave(took)

    def _wait(self, is_wanted: Callable[[], bool]) -> None:
        mine = threading.Event()
        with self._lock:
            self._waiting.append(mine)
            self._let_in()
        try:
            while not mine.wait(LOOK_AGAIN):
                if not is_wanted():
                    raise NotWanted
        except BaseException:
            with self._lock:
                is_in = mine not in self._waiting
                if not is_in:
                    self._waiting.remove(mine)
            if is_in:
                self._leave(0.0)
            raise

    def _leave(self, took: float) -> None:
        with self._lock:
            self._working -= 1
            if len(self._waiting) > self._crowd:
                self._rested = time.monotonic() + self._rest * took
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._working < (1 if len(self._waiting) > self._crowd else self._at_once):
            self._working += 1
            self._waiting.popleft().set()


class _Asked(Generic[Answer]):
    """A request that is being processed, and who waits for its answer."""

    def __init__(self) -> None:
        self.answer: Future[Answer] = Future()
        self.wanted: list[Callable[[], bool]] = []

    def is_wanted(self) -> bool:
        return any(wanted() for wanted in tuple(self.wanted))


class Answers(Generic[Answer]):
    """Answers by key; those that cannot change are kept, up to a total cost."""

    def __init__(self, limit: int, cost: Callable[[Answer], int], turns: Turns | None = None) -> None:
        self._turns = turns or Turns()
        self._kept: Cache[Answer] = Cache(limit, cost)
        self._running: dict[Hashable, _Asked[Answer]] = {}
        self._lock = threading.Lock()

    def kept(self, key: Hashable, make: Callable[[], Answer], is_wanted: Callable[[], bool] = always) -> Answer:
        """An answer that never changes for this key."""
        known = self._kept.find(key)
        if known is not None:
            return known
        answer = self.made(key, make, is_wanted)
        return self._kept.get(key, lambda: answer)

    def made(self, key: Hashable, make: Callable[[], Answer], is_wanted: Callable[[], bool] = always) -> Answer:
        """The current answer. All who request it while it is computed get the same one, or the same exception; raises
        NotWanted if none of them waits any more by then."""
        return self._shared(key, make, is_wanted, self._turns.turn)

    def without_turn(self, key: Hashable, make: Callable[[], Answer], is_wanted: Callable[[], bool] = always) -> Answer:
        """The same without a turn, for answers that only wait for work done elsewhere."""
        return self._shared(key, make, is_wanted, lambda _: contextlib.nullcontext())

    def _shared(
        self,
        key: Hashable,
        make: Callable[[], Answer],
        is_wanted: Callable[[], bool],
        place: Callable[[Callable[[], bool]], contextlib.AbstractContextManager[None]],
    ) -> Answer:
        while True:
            with self._lock:
                asked = self._running.get(key)
                is_first = asked is None
                if asked is None:
                    asked = self._running[key] = _Asked()
                asked.wanted.append(is_wanted)
            if is_first:
                return self._answered(key, asked, make, place)
            try:
                return asked.answer.result()
            except NotWanted:
                # All earlier clients had disconnected just before.
                if not is_wanted():
                    raise

    def _answered(
        self,
        key: Hashable,
        asked: _Asked[Answer],
        make: Callable[[], Answer],
        place: Callable[[Callable[[], bool]], contextlib.AbstractContextManager[None]],
    ) -> Answer:
        try:
            with place(asked.is_wanted):
                answer = make()
        except BaseException as error:
            self._end(key)
            asked.answer.set_exception(error)
            raise
        self._end(key)
        asked.answer.set_result(answer)
        return answer

    def _end(self, key: Hashable) -> None:
        with self._lock:
            del self._running[key]
