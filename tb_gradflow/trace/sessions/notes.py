"""What is known of one graph: the gradients that the program has requested in it, and the trainings in its runs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_gradflow.trace.engine.reached import behind, reached
from tb_gradflow.trace.sessions.again import Again
from tb_gradflow.trace.sessions.executions import Execution, maker_of, variables_written_by
from tb_gradflow.trace.sessions.plans import Plan
from tb_gradflow.trace.sessions.requests import Request
from tb_gradflow.trace.sessions.steps_in_runs import Step, steps_in
from tb_gradflow.trace.sessions.structure import Structure
from tb_gradflow.trace.sessions.training import Recording, Training
from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.loss_names import requested_in
from tb_gradflow.trace.source.user_line import is_users, name_of_line, path_in_log, working_directory

MOST_KINDS = 256
"""A program that adds ops in each step runs something else each time."""

_ATTRIBUTE = "_tb_gradflow_notes"


@dataclass(slots=True)
class Member:
    """The part of one training in a kind of run.

    Attributes:
        training: The training.
        step: Its step in such runs.
        plan: What to fetch; `None` until one is recorded.
        again: What is kept of the others; `None` until one has run since.
    """

    training: Training
    step: Step
    plan: Plan | None = None
    again: Again | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run: those that fetch, run and feed the same.

    Attributes:
        execution: What they execute.
        members: The trainings of which each is a step.
        asked: The tensors and ops that they fetch and run.
        losses: Where a loss, or a number that a loss is computed from, is in what they fetch, and the number of the
            request that differentiates it.
    """

    execution: Execution
    members: tuple[Member, ...]
    asked: tuple[Any, ...]
    losses: tuple[tuple[int, int], ...]


class Notes:
    """Of one graph.

    Attributes:
        requests: The requested gradients, in order.
        trainings: By the numbers of their requests.
    """

    def __init__(self, graph: Any, recording: Recording) -> None:
        self.requests: list[Request] = []
        self.trainings: dict[tuple[int, ...], Training] = {}
        self._structures: dict[int, Training] = {}
        self.recording = recording
        self._graph = graph
        self._kinds: dict[Any, Kind] = {}
        self._known = 0
        self._lock = threading.Lock()

    def kind_of(self, fetches: Sequence[Any], targets: Sequence[Any], feeds: Iterable[Any]) -> Kind:
        """The kind of a run. `feeds` are references of tensors."""
        # Each step asks for it. The kind keeps these objects alive, so that their ids name them.
        key = (*map(id, fetches), None, *map(id, targets), None, *feeds)
        kind = self._kinds.get(key)
        if kind is None or self._known != len(self.requests):
            with self._lock:
                if self._known != len(self.requests) or len(self._kinds) >= MOST_KINDS:
                    self._kinds.clear()
                    self._known = len(self.requests)
                execution = Execution(self._graph, fetches, targets, [each.deref().name for each in feeds])
                members, losses = tuple(self._members(execution)), tuple(self._losses(fetches))
                kind = self._kinds[key] = Kind(execution, members, (*fetches, *targets), losses)
        return kind

    def trainings_with(self, number: int) -> list[Training]:
        """Those to which a request belongs."""
        return [training for numbers, training in tuple(self.trainings.items()) if number in numbers]

    def disconnected(self, number: int, missing: Sequence[Any]) -> None:
        """There is no gradient for some of what was requested. No run can show that, so the structure is recorded."""
        request = replace(self.requests[number], sources=tuple(missing), answers=(None,) * len(missing))
        graph, requests = self._graph, self.requests

        def structure() -> Structure:
            return Structure(graph, [request], [], requests)

        name = name_of(request.frames)
        found = Training(self.recording, name, structure, is_evaluated=True, of_variables=False)
        self._structures[number] = found
        found.protection.attempt(found.write_structure, graph)

    def _losses(self, fetches: Sequence[Any]) -> Iterator[tuple[int, int]]:
        numbers = [
            (place, each) for place, each in enumerate(fetches) if each.dtype.is_floating and each.shape.rank == 0
        ]
        for number, request in enumerate(self.requests if numbers else ()):
            before = {op.name for op in behind(target.op for target in request.targets)}
            yield from ((place, number) for place, each in numbers if each.op.name in before)

    def _members(self, execution: Execution) -> list[Member]:
        found = []
        for step in steps_in(execution, self.requests):
            is_evaluated = not step.updates
            if is_evaluated and any(_is_applied(self.requests[number]) for number in step.requests):
                continue  # a look at the gradients of a training is not a step of it
            training = self.trainings.get(step.requests)
            if training is None:
                training = self.trainings[step.requests] = self._training(step, is_evaluated=is_evaluated)
            found.append(Member(training, step))
        return found

    def _training(self, step: Step, *, is_evaluated: bool) -> Training:
        for number in step.requests:  # a step shows more
            if (known := self._structures.pop(number, None)) is not None:
                known.discard()
        listed = [self.requests[number] for number in step.requests]
        inner = [self.requests[number] for number in sorted(step.inner)]
        outer = [request for request in listed if request not in inner]
        graph, requests = self._graph, self.requests

        def structure() -> Structure:
            return Structure(graph, [*outer, *inner], inner, requests)

        return Training(
            self.recording,
            name_of((outer or listed)[0].frames),
            structure,
            is_evaluated=is_evaluated,
            of_variables=all(maker_of(source) is not None for request in listed for source in request.sources),
        )


def bypassed(notes: Notes, step: Step, method: str) -> str:
    """The warning for steps that do not run through `Session.run`."""
    return (
        f"tb_gradflow does not record the steps of {name_of(notes.requests[step.requests[0]].frames)} that run through "
        f"`Session.{method}`: only `Session.run` is recorded."
    )


def _is_applied(request: Request) -> bool:
    """Whether an op of the graph changes a variable with a gradient, in any run."""

    def users(tensors: Iterable[Any]) -> Iterator[Any]:
        return (user for tensor in tensors for user in tensor.consumers())

    after = reached(users(request.results()), lambda op: users(op.outputs))
    return any(True for op in after for _ in variables_written_by(op))


def name_of(frames: Sequence[Frame]) -> str:
    """The name of a training: the user's line that requests its gradient, such as `train_31`."""
    frame = _users_frame(frames)
    return name_of_line(frame.file, frame.line)


def _users_frame(frames: Sequence[Frame]) -> Frame:
    return next((each for each in reversed(frames) if is_users(each.file)), frames[-1])


def notes_of(graph: Any, recording: Recording) -> Notes | None:
    """What this recording knows of a graph; `None` if the program has requested no gradient in it."""
    notes = getattr(graph, _ATTRIBUTE, None)
    return notes if notes is not None and notes.recording is recording else None


def note(graph: Any, recording: Recording, request: Request) -> None:
    """Notes a requested gradient. What is kept lives as long as the graph."""
    notes = notes_of(graph, recording)
    if notes is None:
        notes = Notes(graph, recording)
        setattr(graph, _ATTRIBUTE, notes)
    notes.requests.append(request)
    missing = [source for source, answer in zip(request.sources, request.answers, strict=True) if answer is None]
    # Some variables without a gradient are usual: `minimize` requests those of all of them. The program can only look
    # at other answers.
    if len(missing) == len(request.sources) or any(maker_of(source) is None for source in missing):
        notes.disconnected(len(notes.requests) - 1, missing)
    else:
        recording.see(_sentence_on(request))


def _sentence_on(request: Request) -> str:
    """What to do about a gradient if nothing is recorded."""
    frame = _users_frame(request.frames)
    loss, sources = requested_in(request.frames)
    given = [loss or "loss"]
    if sources:
        given.append(f"variables={sources if sources.startswith(('[', '(')) else f'[{sources}]'}")
    if any(op.type == "Placeholder" for op in behind(target.op for target in request.targets)):
        given.append("feed_dict=...")
    return (
        f"{path_in_log(frame.file, working_directory())}:{frame.line} requests a gradient in a tf.compat.v1 graph, but "
        f"no `session.run` computed it: `print(tb_gradflow.explain({', '.join(given)}))` inside the session says what "
        "reaches the variables."
    )
