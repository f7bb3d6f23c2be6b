"""Signals, threads, forks and event loops around a training. The moments are the program's, not those of a clock."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tests.hands.hand import Hand, data, model


class TimeLimit(Exception):
    """A program's own."""


class Signals(keras.callbacks.Callback):
    """Sends a signal to this process at the end of a batch."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.number = number

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == 1:
            signal.raise_signal(self.number)


def _handled(number: signal.Signals, *, raises: type[BaseException] | None) -> Callable[[Hand], None]:
    def hand(given: Hand) -> None:
        def handler(received: int, frame: Any) -> None:
            given.keep(received)
            if raises is not None:
                raise raises("enough")

        net, before = model(), signal.signal(number, handler)
        try:
            given.fit(net, Signals(number))
        except (TimeLimit, SystemExit, KeyboardInterrupt) as error:
            given.keep(type(error).__name__)
        finally:
            given.keep(signal.getsignal(number) is handler)
            signal.signal(number, before)
        given.keep(*net.get_weights())
        given.fit(net)

    hand.__name__ = f"signal_{number.name.lower()}_{'noted' if raises is None else raises.__name__.lower()}"
    return hand


SIGNALS = (
    _handled(signal.SIGALRM, raises=TimeLimit),
    _handled(signal.SIGALRM, raises=None),
    _handled(signal.SIGTERM, raises=SystemExit),
    _handled(signal.SIGTERM, raises=None),
    _handled(signal.SIGUSR1, raises=TimeLimit),
    _handled(signal.SIGINT, raises=KeyboardInterrupt),
)


def handlers_stay(hand: Hand) -> None:
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    hand.fit(model())
    hand.keep([number for number, handler in before.items() if signal.getsignal(number) != handler])


def alarm_stays(hand: Hand) -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000.0)
    hand.fit(model())
    hand.keep(signal.setitimer(signal.ITIMER_REAL, 0.0)[0] > 1.0)


def in_thread(hand: Hand) -> None:
    thread = threading.Thread(target=lambda: hand.fit(model()))
    thread.start()
    thread.join()
    hand.keep(threading.active_count() < 20)


def in_pool(hand: Hand) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first, second = pool.submit(hand.fit, model()), pool.submit(hand.fit, model())
        hand.keep(second.cancel() or second.cancelled())
        first.result()


def thread_cancelled(hand: Hand) -> None:
    """What a thread pool's worker is told by its stop event."""
    stop = threading.Event()

    class Stops(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if stop.is_set():
                raise concurrent.futures.CancelledError
            stop.set()

    net = model()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(hand.fit, net, Stops())
        hand.keep(type(future.exception()).__name__)
    hand.keep(*net.get_weights())


def exception_set_in_thread(hand: Hand) -> None:
    """As rq and others do it for time limits in threads."""
    import ctypes

    class Sets(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                identity = ctypes.c_ulong(threading.get_ident())
                ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(TimeLimit))

    net = model()
    try:
        hand.fit(net, Sets())
    except TimeLimit:
        hand.keep("in time")
    hand.keep(*net.get_weights())
    hand.fit(net)


def in_event_loop(hand: Hand) -> None:
    async def train() -> None:
        net = model()
        ticks: list[int] = []

        async def tick() -> None:
            ticks.append(1)

        await asyncio.gather(asyncio.to_thread(hand.fit, net), tick())
        hand.keep(ticks)
        hand.fit(net)

    asyncio.run(train())


def event_loop_time_out(hand: Hand) -> None:
    async def train() -> None:
        net = model()
        hand.fit(net)
        try:
            await asyncio.wait_for(asyncio.sleep(1000), 0.01)
        except asyncio.TimeoutError:
            hand.keep("time out")
        hand.fit(net)

    asyncio.run(train())


def forked_after(hand: Hand) -> None:
    hand.fit(model())
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(7)
    hand.keep(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    hand.fit(model())


def forked_in_fit(hand: Hand) -> None:
    class Forks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 1:
                child = os.fork()
                if child == 0:
                    os._exit(5)
                hand.keep(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    hand.fit(model(), Forks())


def traced_by_python(hand: Hand) -> None:
    calls: set[str] = set()

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if "/tests/hands/" in frame.f_code.co_filename and frame.f_code.co_name != "callbacks":
            calls.add(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        hand.fit(model())
    finally:
        hand.keep(sys.gettrace() is trace)
        sys.settrace(before)
    hand.keep(sorted(calls))


def profiled_by_python(hand: Hand) -> None:
    import cProfile

    profile = cProfile.Profile()
    net = model()
    try:
        profile.runcall(hand.fit, net)
    except ValueError as error:  # another profiler is active
        hand.keep(str(error))
    hand.keep(len(profile.getstats()) > 100)


def memory_traced(hand: Hand) -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        hand.fit(model())
        hand.keep(tracemalloc.is_tracing())
    finally:
        tracemalloc.stop()


def fault_handler(hand: Hand) -> None:
    was = faulthandler.is_enabled()
    with open("faults", "w") as file:
        faulthandler.enable(file)
        faulthandler.dump_traceback_later(1000, file=file)
        hand.fit(model())
        faulthandler.cancel_dump_traceback_later()
        hand.keep(faulthandler.is_enabled())
        faulthandler.disable()
    if was:
        faulthandler.enable()


def tensorflow_profiled(hand: Hand) -> None:
    tf.profiler.experimental.start("profile")
    try:
        hand.fit(model())
    finally:
        tf.profiler.experimental.stop(save=False)


def at_exit(hand: Hand) -> None:
    def mine() -> None: ...

    atexit.register(mine)
    hand.fit(model())
    atexit.unregister(mine)


def error_in_fit_then_again(hand: Hand) -> None:
    class Raises(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                raise LookupError("mine")

    net = model()
    for _ in range(2):
        try:
            hand.fit(net, Raises())
        except LookupError as error:
            hand.keep(str(error))
    hand.keep(*net.get_weights(), *data()[0])


HANDS = (
    *SIGNALS,
    handlers_stay,
    alarm_stays,
    in_thread,
    in_pool,
    thread_cancelled,
    exception_set_in_thread,
    in_event_loop,
    event_loop_time_out,
    forked_after,
    forked_in_fit,
    traced_by_python,
    profiled_by_python,
    memory_traced,
    fault_handler,
    tensorflow_profiled,
    at_exit,
    error_in_fit_then_again,
)
