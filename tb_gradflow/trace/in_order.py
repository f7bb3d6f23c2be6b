"""Calls of steps that record, in which every variable is read before the step writes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.eager import context


@contextlib.contextmanager
def in_order() -> Iterator[None]:
    """Functions that are called for the first time while this is open keep the control edges they were traced with.

    TensorFlow's dependency optimizer drops the edge from a read to the write behind it where another way leads there,
    and does not keep it when that way is folded to a constant. Among the further gradients of a step that records, a
    gradient inside of a gradient had such ways: of a network that is called three times in a critic's penalty, one call
    read a weight that was written already, in one run of four. The results differ by no other thing.
    """
    here = context.context()
    own = here.function_call_options
    config = config_pb2.ConfigProto.FromString(own.config_proto_serialized)
    config.graph_options.rewrite_options.dependency_optimization = rewriter_config_pb2.RewriterConfig.OFF
    here.function_call_options = context.FunctionCallOptions(executor_type=own.executor_type, config_proto=config)
    try:
        yield
    finally:
        here.function_call_options = own
