"""Slices of a tensor that a target does not depend on, while it depends on other parts of the same tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import SLICES
from tb_gradflow.trace.graph.differentiable import shape_of
from tb_gradflow.trace.graph.flat_ops import FlatOp
from tb_gradflow.trace.source.frames import frames_of
from tb_gradflow.trace.source.user_line import origin_of

# More than a few say nothing new.
_MOST = 16

# A size that is not known, such as that of the batch, is taken for this one; along a longer axis nothing is compared.
_UNKNOWN = 8
_LONGEST = 1 << 16

# What a slice takes along each axis.
_Box = list[range]


def unused_slices(ops: Sequence[FlatOp], users: Mapping[int, Sequence[int]], kept: Set[int]) -> list[int]:
    """Those that the user's lines take of a tensor that one of the `kept` ops computes, and that share no element with
    a part that a kept op takes; only where slices are all that takes anything of it."""
    return list(islice(_found(ops, users, kept), _MOST))


def _found(ops: Sequence[FlatOp], users: Mapping[int, Sequence[int]], kept: Set[int]) -> Iterator[int]:
    for op in sorted(kept):
        takers = [user for user in users.get(op, ()) if not ops[user].backward]
        dead = [user for user in takers if user not in kept and _is_users_slice(ops[user])]
        used = [_box(ops[user]) for user in takers if user in kept] if dead else []
        known = [box for box in used if box is not None]
        if len(known) < len(used):
            continue
        for user in dead:
            box = _box(ops[user])
            if box is not None and not any(_overlap(box, other) for other in known):
                known.append(box)
                yield user


def _is_users_slice(op: FlatOp) -> bool:
    """A slice of floating numbers that a library takes inside of one of its functions is none."""
    if op.type not in SLICES or not op.tensors or not op.tensors[0].dtype.is_floating:
        return False
    return origin_of(frames_of(op.op.traceback), op.type, keep_source=False).api is not None


def _overlap(box: _Box, other: _Box) -> bool:
    return all(not set(one).isdisjoint(two) for one, two in zip(box, other, strict=True))


def _box(op: FlatOp) -> _Box | None:
    """`None` for any op but a slice, and where what it takes is not constant."""
    shape = shape_of(op.op.inputs[0]) if op.type in SLICES and len(op.op.inputs) >= 3 else None
    numbers = [tf.get_static_value(each) for each in op.op.inputs[1:]] if shape is not None else []
    if shape is None or any(each is None for each in numbers):
        return None
    sizes = [_UNKNOWN if size is None or size < 0 else int(size) for size in shape]
    if max(sizes, default=0) > _LONGEST:
        return None
    listed = [[int(number) for number in each] for each in numbers]
    if op.type == "Slice":
        begins, counts = listed
        ends = [None if count < 0 else begin + count for begin, count in zip(begins, counts, strict=True)]
        return [range(size)[begin:end] for size, begin, end in zip(sizes, begins, ends, strict=True)]
    return _strided(op.op, sizes, *listed)


def _strided(op: Any, sizes: Sequence[int], begins: list[int], ends: list[int], strides: list[int]) -> _Box | None:
    masks = {name: int(op.get_attr(f"{name}_mask")) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    places = range(len(begins))
    named = sum(not (masks["ellipsis"] | masks["new_axis"]) >> place & 1 for place in places)
    box: _Box = []
    for place in places:
        is_set = {name: bool(mask >> place & 1) for name, mask in masks.items()}
        if is_set["ellipsis"]:
            box.extend(range(size) for size in sizes[len(box) : len(box) + len(sizes) - named])
        elif not is_set["new_axis"]:
            whole, begin = range(sizes[len(box)]), begins[place]
            if is_set["shrink_axis"]:
                index = begin if begin >= 0 else len(whole) + begin
                box.append(whole[index : index + 1])
            else:
                first, last = None if is_set["begin"] else begin, None if is_set["end"] else ends[place]
                box.append(whole[first : last : strides[place]])
    return box + [range(size) for size in sizes[len(box) :]]
