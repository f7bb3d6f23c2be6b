"""An eager `tf.cond`: the branch that it did not take, and the condition.

A compiled step contains both branches. An eager step runs only one, and a variable of the other would seem to be
unused. So the other branch is traced separately, into a graph that is discarded. Also, Python branches on the
condition, which a compiled step passes to an op, so an op is added for it here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import cond

from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.source.frames import stack_now
from tb_gradflow.trace.tf_internals.patching import replaced


def watch_branches(undo: contextlib.ExitStack, shadow: Shadow) -> None:
    """Until `undo` is closed, branches that an eager step does not take are traced."""

    def looking(original: Callable[..., Any]) -> Callable[..., Any]:
        def eager_cond(pred: Any, true_fn: Any, false_fn: Any, *rest: Any) -> Any:
            began = ops.uid()
            result = original(pred, true_fn, false_fn, *rest)
            if not shadow.is_paused:
                with shadow.paused():
                    _look(shadow, false_fn if pred else true_fn)
                    _decide(shadow, pred, [each for each in _eager_tensors(result) if each._id > began])
            return result

        return eager_cond

    replaced(undo, cond, "_eager_cond_implementation", looking)


def _decide(shadow: Shadow, pred: Any, results: Sequence[Any]) -> None:
    """From now on, the results of the taken branch come from an op that depends on the condition."""
    [condition] = [shadow.known_symbol(each) for each in _eager_tensors(pred)] or [None]
    if condition is None:
        return
    known = Known("If", ("not_differentiable", "yes"), api="tf.cond", frames=stack_now())
    for tensor in results:
        value = shadow.symbol(tensor)
        chosen = shadow.make_opaque("cond", [condition, value], [value.dtype], known).outputs[0]
        chosen.set_shape(value.shape)
        shadow.keep(chosen, tensor)


def _look(shadow: Shadow, branch: Callable[[], Any]) -> None:
    known = Known("If", "not_differentiable", api="tf.cond", frames=stack_now())
    aside = func_graph.FuncGraph("gradflow_untaken")
    # This branch was not meant to run, so whatever it raises is ignored.
    with record.stop_recording(), aside.as_default(), suppressed():
        branch()
    for handle, _ in aside.captures:
        if handle.dtype == tf.resource:
            shadow.make_opaque("untaken", [shadow.symbol(handle)], [tf.float32], known)


def _eager_tensors(nest: Any) -> list[Any]:
    return [each for each in tf.nest.flatten(nest) if isinstance(each, tf.__internal__.EagerTensor)]
