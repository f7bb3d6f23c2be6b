"""The findings over the steps of a run, for the marks on the slider."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tb_gradflow.record.report import Finding
from tb_gradflow.serve.runs.history import History

Json = dict[str, Any]
Key = tuple[str, str, int, str]
"""Cause, op, target and severity: what stays the same when more variables are affected."""

# Diagnosing one step takes 2 ms for a small model, 50 ms for ResNet50. A page that repeats the request gets more.
SECONDS_AT_ONCE = 0.6
SECONDS_IN_ALL = 20.0
# This many steps, evenly spread, are analysed first; then the step of each change between two of them.
EVEN_STEPS = 64
# For larger models a single diagnosis may take longer than anyone would wait for marks.
MOST_OPS = 6_000


class Course:
    """The findings at the steps of one run that were analysed so far."""

    def __init__(self) -> None:
        self._session = ""
        self._found: dict[int, frozenset[Key]] = {}
        self._spent = 0.0
        self._lock = threading.Lock()

    def look(self, history: History) -> Json:
        """Analyses more steps for a while; `complete` if another request would add nothing."""
        with self._lock:
            index = history.readable()
            if index.session.id != self._session:
                self._session, self._found, self._spent = index.session.id, {}, 0.0
            begin = time.monotonic()
            complete = True
            if index.traces and len(history.trace(index.session.id, index.traces[-1]).ops) > MOST_OPS:
                return self._told(complete)
            for step in wanted(index.steps, self._found):
                if time.monotonic() - begin > SECONDS_AT_ONCE:
                    complete = self._spent > SECONDS_IN_ALL
                    break
                if self._spent + time.monotonic() - begin > SECONDS_IN_ALL:
                    break
                self._found[step] = frozenset(key(finding) for finding in history.diagnose(step).findings)
            self._spent += time.monotonic() - begin
            return self._told(complete)

    def _told(self, complete: bool) -> Json:
        return told(self._found, complete)


def told(found: Mapping[int, frozenset[Key]], complete: bool) -> Json:
    """The findings at each step, in the form of the route."""
    steps = sorted(found)
    keys = list(dict.fromkeys(key for step in steps for key in sorted(found[step])))
    place = {key: at for at, key in enumerate(keys)}
    return {
        "steps": steps,
        "findings": [
            {"cause": cause, "op": op, "target": target, "severity": severity} for cause, op, target, severity in keys
        ],
        "present": [sorted(place[key] for key in found[step]) for step in steps],
        "complete": complete,
    }


def key(finding: Finding) -> Key:
    """What distinguishes a finding from others over the steps."""
    return finding.cause, "" if finding.op is None else finding.op.name, finding.target, finding.severity


def wanted(steps: Sequence[int], found: dict[int, frozenset[Key]]) -> Iterator[int]:
    """The steps to analyse next; `found` grows in the meantime."""
    count = len(steps)
    even = (
        range(count)
        if count <= EVEN_STEPS
        else sorted({at * (count - 1) // EVEN_STEPS for at in range(EVEN_STEPS + 1)})
    )
    # The ends first, then ever finer, so that the analysed steps are evenly spread at any time.
    for at in spread(len(even)):
        if steps[even[at]] not in found:
            yield steps[even[at]]
    for left, right in itertools.pairwise(even):
        low, high = left, right
        while high - low > 1 and found[steps[low]] != found[steps[high]]:
            middle = (low + high) // 2
            if steps[middle] not in found:
                yield steps[middle]
            low, high = (middle, high) if found[steps[middle]] == found[steps[low]] else (low, middle)


def spread(count: int) -> Iterator[int]:
    """0 to `count - 1`: the ends first, then the midpoints of the gaps."""
    if count > 0:
        yield 0
    if count > 1:
        yield count - 1
    gaps = [(0, count - 1)]
    for low, high in gaps:
        if high - low > 1:
            middle = (low + high) // 2
            yield middle
            gaps += [(low, middle), (middle, high)]
