"""The numbers that the monitor sees in every step: compared with their limits in the step, and kept for the last few
steps, from which new limits are made between steps.

All of it is a handful of ops on a few numbers. Python waits for none of them but every thirty-second step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.trace.engine.additions import SCOPE
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import Definition, new_node
from tb_gradflow.trace.nonfinite.usual import Excess, Usual

EVERY = 32
"""After how many steps there are new limits; and how many steps are kept."""

_EVERY_OF_LOOP = 8
"""The same for calls that run several steps each."""

_LIMIT = 0.5
"""Of the first number, which is one if something is not finite, and else zero."""

NUMBERS = 2
"""Of each request for gradients: its loss, and half the square of the norm of the gradients that are looked at. Python
sees the norm."""


class Watched:
    """Those of one function.

    Args:
        requests: How many requests for gradients it makes. The numbers are whether something is not finite, and the
            `NUMBERS` of each.
        in_loop: Whether a call runs several steps.
    """

    def __init__(self, requests: int, *, in_loop: bool) -> None:
        self._every = _EVERY_OF_LOOP if in_loop else EVERY
        self._count = count = 1 + NUMBERS * requests
        self._limits = Cell(tf.float32)
        self._recent = Cell(tf.float32)
        self._usual = Usual(count - 1)
        self._is_open = False
        self._steps = 0

    def begins(self) -> bool:
        """Before a step: whether there are new limits."""
        if not self._is_open:
            self._is_open = True
            self._forget()
            self._write_limits()
        self._steps += 1
        if self._steps <= self._every:
            return False
        self._steps = 1
        self._usual.add(self._rows()[:, 1:])
        self._forget()
        self._write_limits()
        return True

    def excess(self) -> Excess | None:
        """In the step: what is unusual of it; `None` if something is not finite."""
        *before, last = self._rows()
        return None if last[0] > _LIMIT else self._usual.excess(list(last[1:]), [list(row[1:]) for row in before])

    def rest(self) -> None:
        """After a step that was not usual: see `Usual.rest`."""
        self._usual.rest()
        self._forget()
        self._write_limits()

    def put(self, definition: Definition, value: str) -> tuple[str, str]:
        """Adds to a function what compares the numbers, float32 `[1, count]`, and what keeps them. Returns what is
        true of a usual step, and the node after which they are kept."""
        scope = f"{SCOPE}/watched"
        nodes = [*self._limits.reading(f"{scope}/limits"), *self._recent.reading(f"{scope}/recent")]
        first, size, axis, axes = (f"{scope}/{each}" for each in ("first", "size", "axis", "axes"))
        nodes += [
            _constant(first, [1, 0]),
            _constant(size, [EVERY - 1, self._count]),
            _constant(axis, 0),
            _constant(axes, [0, 1]),
            new_node(
                f"{scope}/later", "Slice", [f"{scope}/recent:value:0", *(f"{each}:output:0" for each in (first, size))]
            ),
            new_node(f"{scope}/rows", "ConcatV2", [f"{scope}/later:output:0", value, f"{axis}:output:0"], N=2),
            new_node(f"{scope}/within", "LessEqual", [value, f"{scope}/limits:value:0"], T=tf.float32),
            new_node(f"{scope}/usual", "All", [f"{scope}/within:z:0", f"{axes}:output:0"], Tidx=tf.int32),
        ]
        for node in nodes[-4:-2]:
            node.attr["T"].type = tf.float32.as_datatype_enum
        nodes[-4].attr["Index"].type = nodes[-3].attr["Tidx"].type = tf.int32.as_datatype_enum
        nodes[-1].attr["keep_dims"].b = False
        for node in nodes:
            node.device = "/device:CPU:0"
        definition.proto.node_def.extend(nodes)
        kept = f"{scope}/kept"
        self._recent.put(definition, kept, f"{scope}/rows:output:0")
        return f"{scope}/usual:output:0", kept

    def _rows(self) -> npt.NDArray[np.float32]:
        """Those of the steps since the last limits, oldest first."""
        with tf.init_scope():
            rows: npt.NDArray[np.float32] = self._recent.written().numpy()
        rows = rows[~np.isnan(rows[:, 0])]
        rows[:, NUMBERS::NUMBERS] = np.sqrt(2 * rows[:, NUMBERS::NUMBERS])
        return rows

    def _forget(self) -> None:
        self._recent.write(tf.fill([EVERY, self._count], np.float32(np.nan)))

    def _write_limits(self) -> None:
        limits = np.concatenate([[_LIMIT], self._usual.limits])
        limits[NUMBERS::NUMBERS] = limits[NUMBERS::NUMBERS] ** 2 / 2
        with np.errstate(over="ignore"):
            self._limits.write(tf.constant(limits[None].astype(np.float32)))


def _constant(name: str, value: Any) -> Any:
    node = new_node(name, "Const", [], dtype=tf.int32)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
    return node
