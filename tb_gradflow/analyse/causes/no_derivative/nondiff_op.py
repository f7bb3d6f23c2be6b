"""An op that TensorFlow marks as not differentiable: the fallback for cuts."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.images import image_by_hand
from tb_gradflow.analyse.edits.straight_through import through_detour
from tb_gradflow.analyse.edits.written_out import by_arithmetic
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import is_of_a_dataset, tensor_of
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.soft import passed_through


def rule(suspect: Suspect) -> Verdict | None:
    """All other cuts: the op is named, so that every cut is reported."""
    return Verdict("nondiff_op", "error")


def message_and_fix(group: Group) -> Text:
    """A straight-through estimator is offered only if the output has the shape and the dtype of the input."""
    if group.op is not None and is_of_a_dataset(group.op):
        return Template(
            SIZE + "{op} computes with {them} inside `tf.data`, and no gradient leaves a dataset.",
            "Use datasets only for data, and compute the loss from the batches: `for x, y in dataset` outside of "
            "`tf.function`, which turns the loop into such an op; or put all rows into one tensor.",
        )(group)
    message = SIZE + "{op} is on the only path to the loss, and TensorFlow has no derivative for `{kind}`."
    fix = _BETTER.get(group.op.type if group.op else "", "")
    if fix:
        return Template(message, fix)(group)
    text = Template(message, "Use ops with a derivative, or give {fn} one with `tf.custom_gradient`")(group)
    through = f"; or use a straight-through estimator: {passed_through(group)}" if _is_of_the_same_kind(group) else ""
    return Text(text.message, text.fix + through + ".")


_BETTER = {
    "Range": "Create the range first, then scale it: `start + step * tf.range(n, dtype=tf.float32)`.",
    "LinSpace": "Create the range first, then scale it: `start + (stop - start) * tf.range(n, dtype=tf.float32) / (n - "
    "1)`.",
    "RandomShuffle": "Shuffle the indices and gather: `tf.gather({x}, tf.random.shuffle(tf.range(tf.shape({x})[0])))`.",
    "OneHot": "Build it from ones and zeros, and apply the values afterwards: "
    "`hot = tf.one_hot(labels, classes)`, then `hot * on_value + (1.0 - hot) * off_value`.",
    "SparseSparseMaximum": "Compare dense tensors: `tf.maximum(tf.sparse.to_dense(a), tf.sparse.to_dense(b))`.",
    "SparseSparseMinimum": "Compare dense tensors: `tf.minimum(tf.sparse.to_dense(a), tf.sparse.to_dense(b))`.",
    **dict.fromkeys(
        ("CTCBeamSearchDecoder", "CTCBeamSearchDecoderV2", "CTCGreedyDecoder"),
        "Train on `tf.nn.ctc_loss(labels, logits, label_length, logit_length)`, and decode only in a metric.",
    ),
}


def _is_of_the_same_kind(group: Group) -> bool:
    trace, op = group.trace, group.op
    edges = [edge for edge in (op.inputs if op is not None else ()) if edge.op >= 0]
    if op is None or not op.outputs or not edges:
        return False
    before, behind = tensor_of(trace, edges[0]), op.outputs[0]
    return (
        before is not None and before.shape is not None and (before.shape, before.dtype) == (behind.shape, behind.dtype)
    )


CAUSE = Cause(
    name="nondiff_op",
    meaning="any other op that TensorFlow marks as not differentiable: the fallback, so that the blocking op is always "
    "named",
    severity="error",
    fix="another op, or `tf.custom_gradient`",
    text=message_and_fix,
    verb="cuts {them} off",
    edits=(image_by_hand, by_arithmetic, through_detour),
    quotes=(
        "Create the range first, then scale it: ",
        "Build it from ones and zeros, and apply the values afterwards: ",
        "Shuffle the indices and gather: ",
    ),
)
