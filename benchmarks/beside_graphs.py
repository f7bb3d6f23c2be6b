"""The graph of a recorded run in the form that other viewers read: a GraphDef of the same ops, scopes and edges."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from benchmarks.viewer_graphs import transformer, write
from tb_gradflow import GradFlowCallback, open_log
from tb_gradflow.api import Log
from tb_gradflow.record.schema import Trace

STEPS = 24
TRAINED_STEPS = 8


def prepared(place: Path, sizes: Sequence[int], trained: Sequence[str]) -> list[str]:
    """Writes every model for every viewer, below `place`: `logs/NAME` for both tabs, `explorer/NAME.pb`.

    The made-up ones have about `sizes` ops; those of `models.py` named in `trained` are recorded now.
    """
    logs, explorer = place / "logs", place / "explorer"
    explorer.mkdir(parents=True)
    for name in trained:
        record(name, logs / name)
    for ops in sizes:
        write(str(logs / f"made-up-{ops}"), transformer(ops), STEPS)
    names = [*trained, *(f"made-up-{ops}" for ops in sizes)]
    for name in names:
        graph = graph_def(trace_of(open_log(logs / name)))
        write_for_tensorboard(str(logs / name), graph)
        write_for_model_explorer(explorer / f"{name}.pb", graph)
    return names


def record(name: str, log_dir: Path) -> None:
    """A few steps of a real training. Loads TensorFlow."""
    import keras

    from benchmarks.models import MODELS

    model, x, y = MODELS[name]()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, epochs=TRAINED_STEPS, verbose=0, callbacks=[GradFlowCallback(log_dir, update_freq=1)])


def trace_of(log: Log) -> Trace:
    """What was recorded first."""
    index = log.recorded.index()
    return log.recorded.trace(index.session.id, min(index.traces))


def graph_def(trace: Trace) -> GraphDef:
    """Each op as a node, and each variable beside the op that reads it first. What was not recorded is not there."""
    graph = GraphDef()
    handles: dict[int, str] = {}
    taken = {op.name for op in trace.ops}
    for op in trace.ops:
        if op.reads is not None and op.reads not in handles:
            handles[op.reads] = free_name(op.name, trace.variables[op.reads].name, taken)
            graph.node.add(name=handles[op.reads], op="VarHandleOp")
        node = graph.node.add(name=op.name, op=op.type)
        if op.reads is not None:
            node.input.append(handles[op.reads])
        for edge in op.inputs:
            if edge.op >= 0:
                output = f":{edge.output}" if edge.output else ""
                node.input.append(trace.ops[edge.op].name + output)
    return graph


def free_name(reader: str, variable: str, taken: set[str]) -> str:
    """What a variable is called in the scope of its reader; it is taken then."""
    name = "/".join([*reader.split("/")[:-1], variable.rpartition("/")[2]])
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def write_for_tensorboard(directory: str, graph: GraphDef) -> None:
    """A run with this graph, as `tf.summary.graph` writes one."""
    writer = EventFileWriter(directory)
    writer.add_event(Event(wall_time=time.time(), graph_def=graph.SerializeToString()))
    writer.close()


def write_for_model_explorer(path: Path, graph: GraphDef) -> None:
    """A file that its own adapter for GraphDef reads."""
    path.write_bytes(graph.SerializeToString())
