"""Records the steps in the program's own calls of `Session.run`: it fetches a few more tensors in them, which are taken
out of the result before the program sees it. Each call runs once.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import pywrap_tf_session, session

from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.protection.functions import Called, protected
from tb_gradflow.trace.sessions.again import Again
from tb_gradflow.trace.sessions.notes import Kind, Member, Notes, bypassed, notes_of
from tb_gradflow.trace.sessions.plans import Plan
from tb_gradflow.trace.sessions.replays import Replay
from tb_gradflow.trace.sessions.training import Recording, Training

Current = Callable[[], "Recording | None"]
"""Returns the recording to which trainings of this thread belong now; `None` while nothing is recorded."""

_RAW = vars(session.BaseSession)["_do_run"]


class _OfThread(threading.local):
    is_ours = False


_of_thread = _OfThread()


def install(current: Current, failed: Failed) -> None:
    """Permanently replaces the function that carries out `Session.run`, `Operation.run` and `Tensor.eval`."""
    original = vars(session.BaseSession)["_do_run"]
    session.BaseSession._do_run = protected(original, lambda each: _running(each, current), failed, part=_own_part)


def _own_part(args: tuple[Any, ...], _: Mapping[str, Any], call: Called) -> Any:
    """What the program's own call returns, if it has fetched more."""
    return call.results[-1][: len(args[3])]


def _running(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def do_run(
        self: Any, handle: Any, target_list: Any, fetch_list: Any, feed_dict: Any, options: Any, run_metadata: Any
    ) -> Any:
        def run(more: Sequence[Any] = ()) -> Any:
            return original(self, handle, target_list, [*fetch_list, *more], feed_dict, options, run_metadata)

        recording = None if _of_thread.is_ours else current()
        notes = None if recording is None else notes_of(self._graph, recording)
        if recording is None or notes is None:
            return run()
        kind = notes.kind_of(fetch_list, target_list, feed_dict)
        if handle is not None:
            for each in kind.members:
                recording.warn_once(bypassed(notes, each.step, "partial_run"))
            return run()
        is_ours = _is_plain(options) and _has_no_limit(self)
        claimed = _claimed(kind) if is_ours else ()
        fed = {key.deref().name: value for key, value in feed_dict.items()} if kind.members else {}
        own = _Own(self)
        try:
            if claimed:
                results = _Steps(own, kind, claimed, fetch_list, fed).carry_out(run)
            else:
                if is_ours:
                    _keep(kind, own, fed)
                results = _counted(kind, run)
        finally:
            for each in claimed:
                each.training.ends_step()
        if is_ours:
            _see_losses(notes, kind, own, results, [each.training for each in claimed])
        return results

    return do_run


def _claimed(kind: Kind) -> Sequence[Member]:
    """The trainings of which a run is to be recorded."""
    return [each for each in kind.members if each.training.protection.attempt(each.training.claims_step)]


def _keep(kind: Kind, own: _Own, fed: Mapping[str, Any]) -> None:
    """Keeps what a step can be run again with that is not recorded."""
    for each in kind.members:
        if each.plan is not None:
            if each.again is None:
                each.again = Again(each.plan, kind.execution)
            each.training.protection.attempt(each.training.keep, each.again, own.run, fed)


def _see_losses(notes: Notes, kind: Kind, own: _Own, results: Sequence[Any], recorded: Sequence[Training]) -> None:
    """Tells the trainings what their loss is, except those that have recorded a step in which it is not finite."""
    for place, number in kind.losses:
        is_finite = np.isfinite(results[place])
        for each in notes.trainings_with(number):
            if is_finite:
                each.saw(float(results[place]))
            elif each not in recorded:
                each.protection.attempt(each.lost, own.run, own.state)


def _counted(kind: Kind, run: Callable[[], Any]) -> Any:
    """Runs a step that is not recorded."""
    began = time.perf_counter()
    try:
        results = run()
    except BaseException:
        _may_end(kind)
        raise
    took = time.perf_counter() - began
    for each in kind.members:
        each.training.protection.attempt(each.training.completed, took, recorded=False)
    return results


def _may_end(kind: Kind) -> None:
    """Called when the program's run has raised: this may be the end of its trainings."""
    for each in kind.members:
        with suppressed():
            each.training.flush()


def _is_plain(options: Any) -> bool:
    """Whether a run is neither limited nor profiled nor debugged: what the program would see then is that run alone. A
    `MonitoredSession` gives options to each run.
    """
    if options is None:
        return True
    given = config_pb2.RunOptions.FromString(pywrap_tf_session.TF_GetBuffer(options))
    is_debugged = given.output_partition_graphs or given.HasField("debug_options")
    return not (given.trace_level or given.timeout_in_ms or is_debugged)


def _has_no_limit(of: Any) -> bool:
    """Whether a run may take as long as it does."""
    config = getattr(of, "_config", None)
    return config is None or not config.operation_timeout_in_ms


class _Own:
    """Runs of the recorder's own in a session of the program."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def run(self, fetches: Sequence[Any], feeds: Mapping[Any, Any]) -> Sequence[Any]:
        """The values of tensors."""
        _of_thread.is_ours = True
        try:
            fed = {tensor.ref(): value for tensor, value in feeds.items()}
            return list(_RAW(self.session, None, [], list(fetches), fed, None, None))
        finally:
            _of_thread.is_ours = False

    def state(self, plan: Plan) -> Mapping[str, Any]:
        """The values of the variables of a plan."""
        if not plan.state:
            return {}
        values = self.run(list(plan.state.values()), {})
        # The value of a reference shares its memory with the variable, which the step changes.
        return {name: np.array(value) for name, value in zip(plan.state, values, strict=True)}


class _Steps:
    """One run that is a step of trainings, some of which record it.

    Args:
        own: Runs in the same session.
        kind: What it runs.
        claimed: The trainings that record it.
        fetches: What the program fetches.
        fed: What it feeds, by name.
    """

    def __init__(
        self, own: _Own, kind: Kind, claimed: Sequence[Member], fetches: Sequence[Any], fed: Mapping[str, Any]
    ) -> None:
        self._own = own
        self._kind = kind
        self._claimed = claimed
        self._fetches = fetches
        self._fed = fed

    def carry_out(self, run: Callable[..., Any]) -> Any:
        """What `run` returns without the recorder."""
        began = time.perf_counter()
        before = {id(each): each.training.protection.attempt(self._before, each) for each in self._claimed}
        recorded = [each for each in self._claimed if before[id(each)] is not None]
        more = self._more(recorded)
        try:
            results = run(more)
        except BaseException:
            _may_end(self._kind)
            raise
        own, values = results[: len(self._fetches)], self._values(more, results)
        for each in recorded:
            each.training.protection.attempt(self._write, each, values, before[id(each)])
        took = time.perf_counter() - began
        for each in self._kind.members:
            each.training.protection.attempt(each.training.completed, took, recorded=each in recorded)
        return own

    def _before(self, member: Member) -> Mapping[str, Any] | None:
        """The values of the variables; `None` if the step cannot be recorded."""
        try:
            return self._values_before(member)
        except tf.errors.OpError:  # a variable is not initialized, for example: the program's run raises that too
            return None

    def _values_before(self, member: Member) -> Mapping[str, Any] | None:
        if member.plan is None:
            if not member.training.may_plan():
                return None
            member.plan = member.training.plan(self._kind.execution, member.step.updates)
        state, replay = self._own.state(member.plan), member.plan.replay
        if replay is None or replay.is_after:
            return state
        return {**state, **self._replayed(replay, self._fed, {})}

    def _replayed(self, replay: Replay, values: Mapping[str, Any], before: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a run of the recorder's own computes; nothing if it cannot."""
        try:
            feeds = replay.feeds(self._own.session.graph, values, before)
            found = self._own.run(replay.tensors, feeds)
        except tf.errors.OpError:  # an assertion, for example: it is the program's own
            return {}
        return {tensor.name: value for tensor, value in zip(replay.tensors, found, strict=True)}

    def _more(self, recorded: Sequence[Member]) -> list[Any]:
        more: dict[str, Any] = {}
        for each in recorded:
            assert each.plan is not None
            more.update((tensor.name, tensor) for tensor in each.plan.fetches)
        return list(more.values())

    def _values(self, more: Sequence[Any], results: Sequence[Any]) -> Mapping[str, Any]:
        fetched = (tensor.name for tensor in (*self._fetches, *more))
        return {**self._fed, **dict(zip(fetched, results, strict=True))}

    def _write(self, member: Member, values: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        assert member.plan is not None
        plan, after = member.plan, self._own.state(member.plan)
        if plan.replay is not None and plan.replay.is_after:
            values = {**values, **self._replayed(plan.replay, values, before)}
        member.training.write(plan, plan.record(values, before, after))
