"""Additional measurements of each gradient that a collector may make: its instruments. A collector gets those that the
step needs: `nested_gradients`, `barriers`, `term_gradients`, `custom_gradient_checks.step_checks`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tb_gradflow.record.schema import Layer
from tb_gradflow.trace.capture.symbols import Symbols
from tb_gradflow.trace.graph.flat_ops import consumers
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.reach import influenced_by, needed_for
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.numerics.statistics_table import StatisticsTable
from tb_gradflow.trace.tf_internals.tapes import flat_sources

Ask = Callable[..., Any]
"""Requests gradients from a tape: `ask(tape, target, sources, output_gradients, unconnected_gradients)`."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the step for gradients.

    Attributes:
        call: The record of it.
        target: The differentiated value.
        sources: The sources.
        scale: The factor by which the target was multiplied; `None` if it was not.
        symbols: How the step's tensors relate to its graph.
        variables: Those of the step, and the tensors that count as such.
        layers: The layers that have been called, by name scope.
        rows: The statistics of the results of all requests.
    """

    call: Call
    target: Any
    sources: Any
    scale: Any
    symbols: Symbols
    variables: Variables
    layers: Mapping[str, Layer]
    rows: StatisticsTable

    def starts(self) -> set[int]:
        """The flat ops that read or compute the sources."""
        ops = self.call.flattener.ops
        listed = flat_sources(self.sources)
        asked = {self.variables.index_of_source(source) for source in listed}
        made = (self.call.flattener.ref(self.symbols.symbol(source)) for source in listed if self.symbols.knows(source))
        reads = {index for index, op in enumerate(ops) if op.reads is not None and op.reads in asked}
        return reads | {ref.op for ref in made if ref is not None}

    def between(self) -> set[int]:
        """The flat ops between the sources and the target."""
        ops = self.call.flattener.ops
        needed = needed_for(ops, [ref.op for ref in self.call.targets])
        return influenced_by(ops, consumers(ops), self.starts()) & needed

    def is_of_step(self) -> bool:
        """Whether it is made in the step itself, not in a function that the step calls."""
        return self.symbols.graph_now() is self.symbols.root


class Instrument:
    """Measures more of each gradient. This one measures nothing."""

    def asking(self, request: Request, ask: Ask) -> Ask:
        """A request is about to go to the tape, the only one until the tape has answered: the function that replaces
        `ask`. It must return what `ask` returns for the same sources."""
        return ask

    def answered(self, asked: Any) -> None:
        """The tape has returned this, and the collector has kept the statistics. It may add rows to those of the
        call."""

    def failed(self) -> None:
        """The tape has raised an error."""

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""
        return contextlib.nullcontext()

    def more(self) -> dict[str, Any]:
        """Tensors that the step must return in addition to its statistics, each under a unique name."""
        return {}
