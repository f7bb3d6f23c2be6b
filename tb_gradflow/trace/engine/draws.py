"""Lets all functions that are made from one trace draw random numbers from one sequence.

A stateful op such as that of `tf.random.normal` with a seed keeps its own position in its sequence, and each compiled
function has its own ops. Functions that take turns would each lag behind. Therefore the position is kept in a cell that
all share, and the op gives the numbers of the stateless op, which are bit-identical: Philox, whose key is the first
seed, and whose counter has the second seed in its upper half and grows, with each draw, by 256 for each number
(TensorFlow's `GuardedPhiloxRandom::ReserveRandomOutputs`, and `RngReadAndSkip`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import Definition, new_node

_PHILOX = 1

_WITHOUT_STATE = {
    "RandomUniform": "StatelessRandomUniformV2",
    "RandomStandardNormal": "StatelessRandomNormalV2",
    "TruncatedNormal": "StatelessTruncatedNormalV2",
    "RandomUniformInt": "StatelessRandomUniformIntV2",
}

Path = tuple[str, ...]
"""The nodes that call each other, down to a function. TensorFlow runs a function that is called at two places as
two."""


class Draws:
    """The positions of a function's seeded random ops, and of those of functions that it calls."""

    def __init__(self) -> None:
        self._positions: dict[Path, Cell] = {}

    def share(self, definition: Definition, path: Path) -> None:
        """Changes a definition, of a function that is called so, to draw from here."""
        for node in [each for each in definition.proto.node_def if _is_shareable(each)]:
            definition.proto.node_def.extend(_drawing(node, self._position((*path, node.name), node)))

    def _position(self, of: Path, node: Any) -> Cell:
        if of not in self._positions:
            cell = self._positions[of] = Cell(tf.int64)
            cell.write(tf.constant([0, node.attr["seed2"].i, node.attr["seed"].i], tf.int64))
        return self._positions[of]


def draws_in(definition: Any) -> bool:
    """Whether a definition has random ops whose position can be shared."""
    return any(map(_is_shareable, definition.node_def))


def unshared_in(definition: Any) -> list[str]:
    """The types of the seeded random ops in a definition whose position cannot be shared."""
    return [node.op for node in definition.node_def if _is_seeded(node) and not _is_shareable(node)]


def _is_seeded(node: Any) -> bool:
    """Whether a node gives the same random numbers in each run of a program; otherwise no particular numbers are
    expected."""
    if not any(name in node.attr and node.attr[name].i for name in ("seed", "seed2")):
        return False
    kind = op_def_registry.get(node.op)
    return kind is not None and bool(kind.is_stateful)


def _is_shareable(node: Any) -> bool:
    return node.op in _WITHOUT_STATE and "GPU" not in node.device.upper() and _is_seeded(node)


def _drawing(node: Any, position: Cell) -> Iterator[Any]:
    """Turns a random node into one that draws at a shared position; yields what it needs."""
    scope = f"{node.name}/tb_gradflow"
    before = [each for each in node.input if each.startswith("^")]
    shape, *bounds = (each for each in node.input if not each.startswith("^"))
    dtype, sized = node.attr["Tout" if bounds else "dtype"].type, node.attr["T"].type
    handle = position.handle(f"{scope}/position")
    yield handle
    yield _constant(f"{scope}/all", [0])
    yield _constant(f"{scope}/philox", _PHILOX)
    yield _constant(f"{scope}/parts", [2, 1])
    yield _constant(f"{scope}/axis", 0)
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


def _constant(name: str, value: Any) -> Any:
    node = new_node(name, "Const", [], dtype=tf.int32)
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
    return node
