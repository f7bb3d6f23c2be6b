"""Runs functions of the recorder's own, and says what TensorFlow's graph optimizers may do to them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.eager import cancellation, context, execute


def run(name: str, args: Sequence[Any], result_count: int, *, optimized: bool) -> Any:
    """Calls a function, as TensorFlow calls the user's.

    Args:
        name: Its name.
        args: Its arguments.
        result_count: The number of its results.
        optimized: Whether its graph is optimised when it first runs, as the user's is. For one that is run too seldom,
            that does not pay.

    Returns:
        The results; `None` if there are none.
    """
    here = context.context()
    options = here.function_call_options
    config = options.config_proto_serialized
    rewritten = without_memory_optimizer(config) if optimized else _without_optimizers(config)
    attributes = ("executor_type", options.executor_type or "", "config_proto", rewritten)
    cancelling = cancellation.context()
    if cancelling is None:
        return execute.execute(name, result_count, list(args), attributes, here) or None
    return execute.execute_with_cancellation(name, result_count, list(args), attributes, here, cancelling) or None


@contextlib.contextmanager
def cancelled_after(seconds: float) -> Iterator[None]:
    """While the context is open, functions of this thread are cancelled after so long. TensorFlow raises then; it waits
    for the op that is running."""
    manager = cancellation.CancellationManager()
    timer = threading.Timer(seconds, manager.start_cancel)
    timer.daemon = True
    timer.start()
    try:
        with cancellation.CancellationManagerContext(manager):
            yield
    finally:
        timer.cancel()


@functools.cache
def without_memory_optimizer(config: bytes) -> bytes:
    """A `ConfigProto` without the optimizer that, in a step that is estimated to need most of the memory (on a CPU,
    more than 205 MB), lets sums of three or more tensors add them in the order in which they are ready. Functions that
    do more than the user's need more memory, and sums that rounded one way would round another way each time. Sums that
    it rewrites in the user's function too still round differently."""
    changed = config_pb2.ConfigProto.FromString(config)
    changed.graph_options.rewrite_options.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    return bytes(changed.SerializeToString(deterministic=True))


@functools.cache
def _without_optimizers(config: bytes) -> bytes:
    changed = config_pb2.ConfigProto.FromString(config)
    changed.graph_options.rewrite_options.disable_meta_optimizer = True
    return bytes(changed.SerializeToString(deterministic=True))
