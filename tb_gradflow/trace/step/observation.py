"""What was observed while TensorFlow traced a function that the user's program calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tb_gradflow.record.schema import Layer
from tb_gradflow.trace.capture.collector import Collector
from tb_gradflow.trace.capture.patches import watching
from tb_gradflow.trace.capture.snapshots import link_snapshots
from tb_gradflow.trace.engine.calls import graphs_called
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.numerics.statistics_table import StatisticsTable
from tb_gradflow.trace.protection.functions import faults_go_to

_ATTRIBUTE = "_tb_gradflow_observed"


class Observation:
    """One trace.

    Args:
        collectors: What was seen of it; with replicas, one for each.
    """

    def __init__(self, collectors: Sequence[Collector]) -> None:
        self.collectors = collectors
        self._is_finished = False

    def finish(self) -> None:
        """The step is over, and is about to be run: adds facts that are known only now to its structure, once."""
        if not self._is_finished:
            self._is_finished = True
            for collector in self.collectors[:1]:
                collector.finish()
                link_snapshots(collector)

    @property
    def graphs(self) -> list[Any]:
        """The graphs in which gradients were requested."""
        calls = [call for collector in self.collectors for call in collector.calls]
        return list({id(call.flattener.graph): call.flattener.graph for call in calls}.values())


@dataclass(frozen=True, slots=True)
class Seen:
    """What a collector has seen of the functions that one function calls: see `graph.build_trace.Looked`."""

    collector: Collector
    calls: list[Call]
    rows: StatisticsTable
    by_tape: bool = True
    ran_eagerly: bool = False

    @property
    def variables(self) -> Variables:
        return self.collector.variables

    @property
    def layers(self) -> dict[str, Layer]:
        return self.collector.layers

    @property
    def unscaled(self) -> bool:
        return self.collector.unscaled


def seen_in(collector: Collector, graphs: Sequence[Any]) -> Seen:
    """Without the gradients that are requested in other graphs than these: TensorFlow traces a function twice if it
    creates variables, and calls the second trace."""
    called = {id(graph) for graph in graphs}
    calls = [call for call in collector.calls if id(call.flattener.graph) in called]
    dropped = [call.rows for call in collector.calls if call not in calls]
    return Seen(collector, calls, StatisticsTable(block for block in collector.rows if block not in dropped))


@contextlib.contextmanager
def observed(collectors: Sequence[Collector], raised: Callable[[BaseException, Collector], None]) -> Iterator[None]:
    """While the context is open, a function is traced. `raised` is called with an error that ends that."""
    try:
        with faults_go_to(collectors[0].fail), watching(*collectors), collectors[0].recording():
            yield
    except BaseException as error:
        raised(error, collectors[0])
        raise
    observation = Observation(collectors)
    for graph in observation.graphs:
        setattr(graph, _ATTRIBUTE, observation)


def observation_in(function: Any) -> Observation | None:
    """What was observed of a `ConcreteFunction`, or of a function that it calls; `None` if that requests no
    gradient, or nobody has observed it."""
    for graph in graphs_called(function):
        found = getattr(graph, _ATTRIBUTE, None)
        if isinstance(found, Observation):
            return found
    return None
