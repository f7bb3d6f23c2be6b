"""What the replicas of one step measure, brought together.

Each replica of a `tf.distribute` strategy runs the step on its part of the batch. The log shows them as one: the
gradient of a tensor on the way has as many parts as there are replicas, and its statistics are those of all parts
together; the gradient of a variable is the sum over the replicas, which is what the optimizer applies. A NaN that one
replica has shows in both. The structure is that of the first replica.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import RANGE_STATISTICS
from tb_gradflow.trace.engine.additions import Additions
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.numerics.statistics import gradient_statistics
from tb_gradflow.trace.step.measurements import Measured, Measurements
from tb_gradflow.trace.step.named_inputs import NameInputs
from tb_gradflow.trace.step.observation import Observation
from tb_gradflow.trace.step.settings import Settings
from tb_gradflow.trace.step.state import Read, kept

SMALLEST, LARGEST = (RANGE_STATISTICS.index(name) for name in ("smallest", "largest"))

Array = npt.NDArray[np.float32]


class OfReplicas:
    """The measurements of all replicas of a step: see `Measurements`.

    Args:
        replicas: Those of each.
    """

    def __init__(self, replicas: Sequence[Measurements]) -> None:
        self._replicas = replicas
        self.trace = replicas[0].trace

    @property
    def calls(self) -> list[Call]:
        """The gradients that are taken."""
        return [call for each in self._replicas for call in each.calls]

    @property
    def additions(self) -> list[Additions]:
        """The ops that measure them."""
        return [additions for each in self._replicas for additions in each.additions]

    def begin(self, read: Read = kept) -> None:
        """Before the step."""
        for each in self._replicas:
            each.begin(read)

    def take(self, read: Read = kept) -> Measured:
        """After it: what was measured."""
        taken = [each.take(read) for each in self._replicas]
        tables = [each["gradients"] for each in taken]
        if len({table.shape for table in tables}) > 1:
            raise ValueError("the replicas of this step run different ops")
        rows = _together(np.stack(tables))
        numbers = [row for each in self.trace.ranges for row in (each.row, *each.beyond)]
        rows[numbers] = _widest(np.stack(tables)[:, numbers])
        for row, parts in _by_row([each.parts for each in self._replicas]).items():
            rows[row] = gradient_statistics(np.sum(parts, 0)).numpy()
        return {**taken[0], "gradients": rows, "losses": np.sum([each["losses"] for each in taken], 0)}


def measured_in(
    observation: Observation,
    function: Any,
    settings: Settings,
    inputs: NameInputs,
    index: int,
    *,
    trains: bool = True,
    optimized: bool = True,
) -> Measurements | OfReplicas:
    """What functions made from one trace measure: see `Measurements`."""
    observation.finish()
    graphs = {id(place.graph) for place in places(function)}
    here = [
        (number, each)
        for number, each in enumerate(observation.collectors)
        if not each.calls or any(id(call.flattener.graph) in graphs for call in each.calls)
    ]
    replicas = [
        Measurements(
            each,
            function,
            settings,
            inputs,
            index,
            trains=trains,
            optimized=optimized,
            replica=number if len(here) > 1 else None,
        )
        for number, each in here
    ]
    return replicas[0] if len(replicas) == 1 else OfReplicas(replicas)


def _by_row(replicas: Sequence[Mapping[int, Array]]) -> dict[int, list[Array]]:
    """The parts of each gradient of which every replica has one."""
    return {row: [each[row] for each in replicas] for row in replicas[0] if all(row in each for each in replicas)}


def _together(tables: Array) -> Array:
    """From `[replicas, rows, 6]` to `[rows, 6]`: the statistics of all replicas' tensors as one. Means and fractions
    count each replica once, even where the last batch was not divided evenly."""
    norm, largest, mean, zeros, nan_count, inf_count = np.moveaxis(tables.astype(np.float64), -1, 0)
    columns = [np.hypot.reduce(norm, 0), np.max(largest, 0), np.mean(mean, 0), np.mean(zeros, 0)]
    return np.stack([*columns, np.sum(nan_count, 0), np.sum(inf_count, 0)], -1).astype(np.float32)


def _widest(ranges: Array) -> Array:
    """From `[replicas, ranges, 6]` to `[ranges, 6]`: those over all replicas, NaN where none has a finite value."""
    widest = np.zeros(ranges.shape[1:], np.float32)
    widest[:, SMALLEST] = np.fmin.reduce(ranges[..., SMALLEST], 0)
    widest[:, LARGEST] = np.fmax.reduce(ranges[..., LARGEST], 0)
    return widest
