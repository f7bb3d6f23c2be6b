"""What was observed while TensorFlow traced a function that the user's program calls."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.patches import watching
from tb_gradflow.trace.engine.calls import graphs_called
from tb_gradflow.trace.graph.build_trace import Looked
from tb_gradflow.trace.numerics.statistics_table import StatisticsTable
from tb_gradflow.trace.protection.functions import faults_go_to

_ATTRIBUTE = "_tb_gradflow_observed"


class Observation:
    """One trace.

    Args:
        collector: Makes what collects the gradients of a replica, whose number it is given; 0 where there are none.
        notes: For the log.
    """

    def __init__(self, collector: Callable[[int], Collector], notes: Sequence[str] = ()) -> None:
        self.notes = notes
        self._make = collector
        self._collectors = {0: collector(0)}
        self._is_finished = False

    def of_replica(self, number: int) -> Collector:
        """What collects the gradients of a replica."""
        if number not in self._collectors:
            self._collectors[number] = self._make(number)
        return self._collectors[number]

    @property
    def collectors(self) -> list[Collector]:
        """What was seen of each replica that takes gradients, or of a function that takes none."""
        taking = [each for _, each in sorted(self._collectors.items()) if each.calls]
        return taking or [self._collectors[0]]

    def finish(self) -> None:
        """The step is over, and is about to be run: adds facts that are known only now to its structure, once."""
        if not self._is_finished:
            self._is_finished = True
            self.collectors[0].finish()

    def takes_none_in(self, graph: Any) -> None:
        """A function of this graph was observed, and takes no gradient."""
        self._collectors[0].symbols.root = graph
        setattr(graph, _ATTRIBUTE, weakref.ref(self))

    @property
    def fault(self) -> Exception | None:
        """An exception for which it cannot be recorded; `None` if there is none."""
        return next((each.fault for each in self._collectors.values() if each.fault is not None), None)

    @property
    def graphs(self) -> list[Any]:
        """The graphs in which gradients were requested."""
        calls = [call for collector in self.collectors for call in collector.calls]
        return list({id(call.flattener.graph): call.flattener.graph for call in calls}.values())


def seen_in(collector: Collector, graphs: Sequence[Any] | None = None) -> Looked:
    """What a collector has seen. Without the gradients that are requested in other graphs than these, if any are
    given: TensorFlow traces a function twice if it creates variables, and calls the second trace."""
    calls, rows = collector.calls, collector.rows
    if graphs is not None:
        called = {id(graph) for graph in graphs}
        calls = [call for call in collector.calls if id(call.flattener.graph) in called]
        dropped = [call.rows for call in collector.calls if call not in calls]
        rows = StatisticsTable(block for block in collector.rows if block not in dropped)
    return Looked(calls, collector.variables, rows, collector.layers, collector.called, unscaled=collector.unscaled)


@contextlib.contextmanager
def observed(observation: Observation, raised: Callable[[BaseException, Collector], None]) -> Iterator[None]:
    """While the context is open, a function is traced, whose graphs refer to the observation but do not keep it.
    `raised` is called with an error that ends the trace. Raises what keeps it from being recorded, at its end."""
    first = observation.of_replica(0)
    try:
        with faults_go_to(first.fail), watching(first, observation.of_replica), first.recording():
            yield
    except BaseException as error:
        raised(error, first)
        raise
    # Weakly: TensorFlow keeps a graph with a custom gradient until the program ends, and Keras makes one in each fit.
    # So it must not keep the model and its recorder.
    for graph in observation.graphs:
        setattr(graph, _ATTRIBUTE, weakref.ref(observation))
    if observation.fault is not None:
        raise observation.fault


def observation_in(function: Any) -> Observation | None:
    """What was observed of a `ConcreteFunction`, or of a function that it calls; `None` if that requests no
    gradient, or nobody has observed it."""
    for graph in graphs_called(function):
        found = getattr(graph, _ATTRIBUTE, lambda: None)()
        if isinstance(found, Observation):
            return found
    return None
