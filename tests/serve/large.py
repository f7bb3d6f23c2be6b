"""A log as large as that of a large model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tb_gradflow.record.schema import StepRecord, TensorGradient, Variable, VariableGradient
from tests.store.samples import BEGAN, op, open_writer, trace

ROWS, VARIABLES = 960, 320


def write_large(directory: Path, steps: int) -> None:
    """A chain of as many ops and variables as a ResNet50 has; every number is noise."""
    random = np.random.default_rng(0)
    reads = [op(f"layer_{at}/read", "ReadVariableOp", reads=at) for at in range(VARIABLES)]
    chain = [op(f"layer_{at % VARIABLES}/op_{at}", "Mul", at % VARIABLES) for at in range(ROWS)]
    last = VARIABLES + ROWS
    large = replace(
        trace(),
        ops=(*reads, *chain, op("loss", "AddN", *range(VARIABLES, last))),
        variables=tuple(Variable(f"layer_{at}/kernel", (64, 64), "float32", True, True) for at in range(VARIABLES)),
        targets=(replace(trace().targets[0], op=last),),
        variable_gradients=tuple(VariableGradient(0, at, "value", at, True) for at in range(VARIABLES)),
        tensor_gradients=tuple(TensorGradient(0, VARIABLES + at, 0, "value", at) for at in range(VARIABLES, ROWS)),
    )
    with open_writer(directory) as writer:
        writer.write_trace(large)
        for number in range(steps):
            gradients = np.exp(random.normal(-5, 2, (ROWS, 6))).astype("<f4")
            gradients[:, 3] = random.uniform(0, 1, ROWS)
            gradients[:, 4:] = 0
            norms = np.exp(random.normal(0, 1, (VARIABLES, 4))).astype("<f4")
            norms[:, 2:] = 0
            writer.write_step(StepRecord(0, number, BEGAN + number, (0.5,), gradients.tobytes(), norms.tobytes()))
