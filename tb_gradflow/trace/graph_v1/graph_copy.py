"""A copy of a `tf.compat.v1` graph, in which gradients may be built and run, so that the user's graph is not changed.

Gradient functions of `tf.custom_gradient` hold tensors of the graph in which they were created. For the copy they are
called in a scratch graph next to the original, which is then imported.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import func_graph, meta_graph, ops

from tb_gradflow.trace.graph.differentiable import custom_gradient_name

_CONTEXTS = ["cond_context", "while_context"]
_COPIES = itertools.count()


def copied(graph: Any) -> Any:
    """The same graph again, op by op, with the branches and loops of TensorFlow 1 and with its custom gradients."""
    meta = meta_graph.create_meta_graph_def(
        graph_def=graph.as_graph_def(add_shapes=True), graph=graph, collection_list=_CONTEXTS
    )
    _rename_functions(meta.graph_def, f"_gradflow_{next(_COPIES)}")
    twin = tf.Graph()
    with twin.as_default():
        meta_graph.import_scoped_meta_graph(meta, clear_devices=True)
    for op in twin.get_operations():
        if op.type == "IdentityN" and custom_gradient_name(op) is not None:
            op._gradient_function = _brought_over(graph, graph.get_operation_by_name(op.name), twin)
    return twin


def _rename_functions(definition: graph_pb2.GraphDef, suffix: str) -> None:
    """TensorFlow derives functions from those that it differentiates, and keeps them under generated names for the
    whole process: the derivatives of the copy must not use the names that those of the original would get.
    """
    names = {function.signature.name: function.signature.name + suffix for function in definition.library.function}
    for function in definition.library.function:
        function.signature.name = names[function.signature.name]
        _rename_calls(function.node_def, names)
    for gradient in definition.library.gradient:
        gradient.function_name = names.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = names.get(gradient.gradient_func, gradient.gradient_func)
    _rename_calls(definition.node, names)


def _rename_calls(nodes: Iterable[Any], names: dict[str, str]) -> None:
    for node in nodes:
        node.op = names.get(node.op, node.op)
        for value in node.attr.values():
            for called in [value.func, *value.list.func] if value.WhichOneof("value") in ("func", "list") else []:
                if called.name in names:
                    called.name = names[called.name]


def _brought_over(graph: Any, original: Any, twin: Any) -> Callable[..., Sequence[Any]]:
    """The gradient function of an op, for the op of the same name in another graph."""

    def gradient(_: Any, *upstream: Any) -> Sequence[Any]:
        with graph.as_default():
            scratch = func_graph.FuncGraph("gradflow_gradient")
        with scratch.as_default():
            arriving = [tf.compat.v1.placeholder(each.dtype, each.shape) for each in upstream]
            found = ops.get_gradient_function(original)(original, *arriving)
            listed = [None if each is None else tf.convert_to_tensor(each) for each in found]
        given = {inner.name: twin.get_tensor_by_name(outer.name) for outer, inner in scratch.captures}
        given.update((inner.name, outer) for inner, outer in zip(arriving, upstream, strict=True))
        names = [each.name for each in listed if each is not None]
        results = iter(tf.graph_util.import_graph_def(scratch.as_graph_def(), given, names, name="custom_gradient"))
        return [None if each is None else next(results) for each in listed]

    return gradient


def twin_of(tensor: Any, twin: Any) -> Any:
    """The tensor of the copy that corresponds to `tensor` in the original."""
    return twin.get_tensor_by_name(tensor.name)
