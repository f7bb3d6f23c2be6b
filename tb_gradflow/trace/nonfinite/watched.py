"""The numbers that the monitor sees in every step: compared with their limits in the step, and kept for the last few
steps, from which new limits are made between steps.

All of it is a handful of ops on a few numbers. Python waits for none of them but every sixty-fourth step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.trace.engine.additions import SCOPE
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import Definition, new_constant, new_node
from tb_gradflow.trace.nonfinite.usual import REMEMBERED, Excess, Usual

EVERY = 64
"""After how many steps there are new limits; and how many steps are kept."""

EVERY_AT_FIRST = 32
"""The same while little is known."""

_EVERY_OF_LOOP = 8
"""The same for calls that run several steps each."""

NUMBERS = 2
"""Of each request for gradients: its loss, and half the square of the norm of the gradients that are looked at. Python
sees the norm."""

_FINITE = float(np.finfo(np.float32).max)
"""What is not finite is above this limit."""


class Watched:
    """Those of one function.

    Args:
        requests: How many requests for gradients it makes.
        in_loop: Whether a call runs several steps.
    """

    def __init__(self, requests: int, *, in_loop: bool) -> None:
        self._in_loop = in_loop
        self._count = NUMBERS * requests
        self._limits = Cell(tf.float32)
        self._recent = Cell(tf.float32)
        self._usual = Usual(self._count)
        self._is_open = False
        self._steps = 0

    def begins(self) -> bool:
        """Before a step: whether there are new limits."""
        if not self._is_open:
            self._is_open = True
            self._forget()
            self._write_limits()
        self._steps += 1
        if self._steps <= every(self._usual, in_loop=self._in_loop):
            return False
        self._steps = 1
        self._usual.add(self._rows())
        self._forget()
        self._write_limits()
        return True

    def seen(self) -> tuple[bool, Excess | None]:
        """In the step: whether all of it is finite, and what is unusual of it; `None` if nothing is, to within the
        rounding of a limit."""
        *before, last = self._rows()
        is_finite = bool(np.isfinite(last).all())
        return is_finite, self._usual.excess(list(last), [list(row) for row in before]) if is_finite else None

    def rest(self) -> None:
        """After a step that was not usual: see `Usual.rest`."""
        self._usual.rest()
        self._forget()
        self._write_limits()

    def put(self, definition: Definition, value: str) -> tuple[str, str]:
        """Adds to a function what compares the numbers, a float32 vector, and what keeps them. Returns what is true of
        a usual step, and the node after which they are kept."""
        scope = f"{SCOPE}/watched"
        first, size, zero = (f"{scope}/{each}" for each in ("first", "size", "zero"))
        later = new_node(
            f"{scope}/later", "Slice", [f"{scope}/recent:value:0", f"{first}:output:0", f"{size}:output:0"]
        )
        rows = new_node(f"{scope}/rows", "ConcatV2", [f"{scope}/later:output:0", value, f"{zero}:output:0"], N=2)
        for node, index in ((later, "Index"), (rows, "Tidx")):
            node.attr["T"].type = tf.float32.as_datatype_enum
            node.attr[index].type = tf.int32.as_datatype_enum
        nodes = [
            *self._limits.reading(f"{scope}/limits"),
            *self._recent.reading(f"{scope}/recent"),
            new_constant(first, [self._count]),
            new_constant(size, [(EVERY - 1) * self._count]),
            new_constant(zero, 0),
            later,
            rows,
            new_node(f"{scope}/within", "LessEqual", [value, f"{scope}/limits:value:0"], T=tf.float32),
            new_node(
                f"{scope}/usual", "All", [f"{scope}/within:z:0", f"{zero}:output:0"], Tidx=tf.int32, keep_dims=False
            ),
        ]
        for node in nodes:
            node.device = "/device:CPU:0"
        definition.proto.node_def.extend(nodes)
        kept = f"{scope}/kept"
        self._recent.put(definition, kept, f"{scope}/rows:output:0")
        return f"{scope}/usual:output:0", kept

    def _rows(self) -> npt.NDArray[np.float32]:
        """Those of the steps since the last limits, oldest first."""
        with tf.init_scope():
            rows: npt.NDArray[np.float32] = self._recent.written().numpy().reshape(EVERY, self._count)
        # A half of a square is not negative, but where nothing was written.
        rows = rows[~(rows[:, 1] < 0)]
        with np.errstate(invalid="ignore", over="ignore"):
            rows[:, 1::NUMBERS] = np.sqrt(2 * rows[:, 1::NUMBERS])
        return rows

    def _forget(self) -> None:
        self._recent.write(tf.fill([EVERY * self._count], np.float32(-1)))

    def _write_limits(self) -> None:
        limits = self._usual.limits.copy()
        limits[1::NUMBERS] = limits[1::NUMBERS] ** 2 / 2
        self._limits.write(tf.constant(np.minimum(limits, _FINITE).astype(np.float32)))


def every(usual: Usual, *, in_loop: bool = False) -> int:
    """After how many calls there are new limits."""
    if in_loop:
        return _EVERY_OF_LOOP
    return EVERY_AT_FIRST if usual.steps < REMEMBERED // 2 else EVERY
