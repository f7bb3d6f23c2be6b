"""Lets all functions that are made from one trace draw random numbers from one sequence.

A stateful op such as that of `tf.random.normal` with a seed keeps its own position in its sequence, and each compiled
function has its own ops. Functions that take turns would each lag behind. Therefore the position is kept in a cell that
all share, and the op gives the numbers of the stateless op, which are bit-identical: Philox, whose key is the first
seed, and whose counter has the second seed in its upper half and grows, with each draw, by 256 for each number
(TensorFlow's `GuardedPhiloxRandom::ReserveRandomOutputs`, and `RngReadAndSkip`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tb_gradflow.trace.engine.calls import CallSite, Path, called, callers_of, places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import Definition, new_constant, new_node

_PHILOX = 1

_WITHOUT_STATE = {
    "RandomUniform": "StatelessRandomUniformV2",
    "RandomStandardNormal": "StatelessRandomNormalV2",
    "TruncatedNormal": "StatelessTruncatedNormalV2",
    "RandomUniformInt": "StatelessRandomUniformIntV2",
}


class Draws:
    """The positions of the random ops of a function, an `AtomicFunction`, and of those that it calls. As an edit, it
    lets a sibling draw there.

    Attributes:
        apart: See `Edit`.
        has_seeds: Whether one of the ops gives the same numbers in each run of a program, whose position is shared.
        unshared: The types of those that do, but whose position cannot be shared.
    """

    def __init__(self, function: Any) -> None:
        self._positions: dict[Path, Cell] = {}
        self._first: dict[Path, Any] = {}
        drawing = {
            name for name, each in called(function).items() if any(map(is_shareable, each.cached_definition.node_def))
        }
        self.apart = frozenset(callers_of(called(function), drawing))
        # XLA has generators of its own, whose numbers differ from run to run.
        seeded = [
            node
            for place in places(function)
            if not place.in_xla
            for node in place.definition.node_def
            if is_random(node) and _is_seeded(node)
        ]
        self.has_seeds = any(map(is_shareable, seeded))
        self.unshared = sorted({node.op for node in seeded if not is_shareable(node)})

    def changes(self, place: CallSite) -> bool:
        return not place.in_xla and place.name in self.apart

    def make(self, definition: Definition, place: CallSite) -> Sequence[Any]:
        for node in [each for each in definition.proto.node_def if is_shareable(each)]:
            definition.proto.node_def.extend(_drawing(node, self._position((*place.path, node.name), node)))
        return []

    @property
    def are_made(self) -> bool:
        """Whether there are such ops in the functions that were made."""
        return bool(self._positions)

    def rewind(self) -> None:
        """The next function draws what the first one has drawn."""
        for of, first in self._first.items():
            self._positions[of].write(first)

    def _position(self, of: Path, node: Any) -> Cell:
        if of not in self._positions:
            seeds = [node.attr["seed2"].i, node.attr["seed"].i]
            if not any(seeds):  # no particular numbers are expected
                seeds = list(np.frombuffer(os.urandom(16), np.int64))
            cell = self._positions[of] = Cell(tf.int64)
            self._first[of] = tf.constant([0, *seeds], tf.int64)
            cell.write(self._first[of])
        return self._positions[of]


def is_random(node: Any) -> bool:
    """Whether a node draws random numbers from a position of its own."""
    kind = op_def_registry.get(node.op)
    return "seed" in node.attr and kind is not None and bool(kind.is_stateful)


def _is_seeded(node: Any) -> bool:
    """Whether a node gives the same random numbers in each run of a program."""
    return any(name in node.attr and node.attr[name].i for name in ("seed", "seed2"))


def is_shareable(node: Any) -> bool:
    """Whether a node draws random numbers, and all functions can draw them from one position."""
    return node.op in _WITHOUT_STATE and "GPU" not in node.device.upper()


def _drawing(node: Any, position: Cell) -> Iterator[Any]:
    """Turns a random node into one that draws at a shared position; yields what it needs."""
    scope = f"{node.name}/tb_gradflow"
    before = [each for each in node.input if each.startswith("^")]
    shape, *bounds = (each for each in node.input if not each.startswith("^"))
    dtype, sized = node.attr["Tout" if bounds else "dtype"].type, node.attr["T"].type
    handle = position.handle(f"{scope}/position")
    yield handle
    yield new_constant(f"{scope}/all", [0])
    yield new_constant(f"{scope}/philox", _PHILOX)
    yield new_constant(f"{scope}/parts", [2, 1])
    yield new_constant(f"{scope}/axis", 0)
    philox = f"{scope}/philox:output:0"
    yield new_node(f"{scope}/sizes", "Cast", [shape], SrcT=tf.dtypes.as_dtype(sized), DstT=tf.int64)
    sizes = [f"{scope}/sizes:y:0", f"{scope}/all:output:0"]
    yield new_node(f"{scope}/count", "Prod", sizes, T=tf.int64, Tidx=tf.int32, keep_dims=False)
    yield new_node(f"{scope}/delta", "Bitcast", [f"{scope}/count:output:0"], T=tf.int64, type=tf.uint64)
    skip = new_node(f"{scope}/skip", "RngReadAndSkip", [f"{handle.name}:resource:0", philox, f"{scope}/delta:output:0"])
    skip.input.extend(before)
    skip.device = handle.device
    yield skip
    parts = [f"{skip.name}:value:0", f"{scope}/parts:output:0", f"{scope}/axis:output:0"]
    yield new_node(f"{scope}/split", "SplitV", parts, T=tf.int64, Tlen=tf.int32, num_split=2)
    for number, name in enumerate(("counter", "key")):
        part = f"{scope}/split:output:{number}"
        yield new_node(f"{scope}/{name}", "Bitcast", [part], T=tf.int64, type=tf.uint64)
    node.op = _WITHOUT_STATE[node.op]
    del node.input[:]
    node.input.extend([shape, f"{scope}/key:output:0", f"{scope}/counter:output:0", philox, *bounds])
    for name in ("seed", "seed2", "T", "Tout"):
        node.attr.pop(name, None)
    node.attr["dtype"].type, node.attr["Tshape"].type = dtype, sized
