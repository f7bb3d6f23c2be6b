"""Variables that a function of a `tf.data.Dataset` reads, before a step gets its batch."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Set
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import func_graph

from tb_gradflow.trace.protection.living_objects import holders_of
from tb_gradflow.trace.source.frames import Frame, frames_of

Read = tuple[tuple[Frame, ...], str]
"""The traceback and the type of an op."""


def reads_in_datasets(variables: Mapping[int, Any]) -> dict[int, Read]:
    """By the numbers of the variables, the first op of a dataset that reads one. Others are left out."""
    handles = {number: variable.handle for number, variable in variables.items() if hasattr(variable, "handle")}
    known = {
        number: handle._id for number, handle in handles.items() if isinstance(handle, tf.__internal__.EagerTensor)
    }
    reads = _reads_of(frozenset(known.values())) if known else {}
    return {number: reads[key] for number, key in known.items() if key in reads}


@functools.lru_cache(maxsize=64)  # each step of an eager loop asks, and the search takes 50 ms
def _reads_of(handles: Set[int]) -> dict[int, Read]:
    found: dict[int, Read] = {}
    for graph in holders_of(func_graph.FuncGraph):
        # TensorFlow names these functions after the method: `Dataset_map_lambda`.
        if type(graph) is not func_graph.FuncGraph or not graph.name.startswith("Dataset_"):
            continue
        for outer, inner in graph.captures:
            if isinstance(outer, tf.__internal__.EagerTensor) and outer._id in handles:
                for op in inner.consumers()[:1]:
                    found.setdefault(outer._id, (tuple(frames_of(op.traceback)), op.type))
    return found
