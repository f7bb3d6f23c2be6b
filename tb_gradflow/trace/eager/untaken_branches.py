"""An eager `tf.cond`: the branch that it did not take, and the condition that decided.

A compiled step holds both branches; an eager one runs one of them, and a variable of the other would look as if
nothing used it. The other one is traced on the side, into a graph that is thrown away. And Python decides by the
condition, which a compiled step hands to an op: so there is one here as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import cond

from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.source.frames import stack_now
from tb_gradflow.trace.tf_internals.patching import replaced


class Branches:
    """The branches of one eager step."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While the context is open, branches that are not taken are looked into."""
        with contextlib.ExitStack() as undo:
            replaced(undo, cond, "_eager_cond_implementation", self._looking)
            yield

    def _looking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def eager_cond(pred: Any, true_fn: Any, false_fn: Any, *rest: Any) -> Any:
            began = ops.uid()
            result = original(pred, true_fn, false_fn, *rest)
            if not self._shadow.is_paused:
                with self._shadow.paused():
                    self._look(false_fn if pred else true_fn)
                    self._decide(pred, [each for each in _eager_tensors(result) if each._id > began])
            return result

        return eager_cond

    def _decide(self, pred: Any, results: Sequence[Any]) -> None:
        """From here on, the results of the branch that was taken come from an op that the condition goes into."""
        [condition] = [self._shadow.known_symbol(each) for each in _eager_tensors(pred)] or [None]
        if condition is None:
            return
        known = Known("If", ("not_differentiable", "yes"), api="tf.cond", frames=stack_now())
        for tensor in results:
            value = self._shadow.symbol(tensor)
            chosen = self._shadow.make_opaque("cond", [condition, value], [value.dtype], known).outputs[0]
            chosen.set_shape(value.shape)
            self._shadow.keep(chosen, tensor)

    def _look(self, branch: Callable[[], Any]) -> None:
        known = Known("If", "not_differentiable", api="tf.cond", frames=stack_now())
        aside = func_graph.FuncGraph("gradflow_untaken")
        # It was not to run: whatever it raises is nobody's business.
        with record.stop_recording(), aside.as_default(), contextlib.suppress(Exception):
            branch()
        for handle, _ in aside.captures:
            if handle.dtype == tf.resource:
                self._shadow.make_opaque("untaken", [self._shadow.symbol(handle)], [tf.float32], known)


def _eager_tensors(nest: Any) -> list[Any]:
    return [each for each in tf.nest.flatten(nest) if isinstance(each, tf.__internal__.EagerTensor)]
