"""Functions of the recorder's own, which are run too seldom for TensorFlow's graph optimizers to pay."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.eager import context


@contextlib.contextmanager
def unoptimized() -> Iterator[None]:
    """While the context is open, functions that are called for the first time are not optimised."""
    here = context.context()
    before = here.function_call_options
    here.function_call_options = _without_optimizer(before.config_proto_serialized, before.executor_type)
    try:
        yield
    finally:
        here.function_call_options = before


@functools.cache
def _without_optimizer(serialized: bytes, executor_type: str | None) -> Any:
    config = config_pb2.ConfigProto.FromString(serialized)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return context.FunctionCallOptions(executor_type, config)
