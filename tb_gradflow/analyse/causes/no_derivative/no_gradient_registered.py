"""TensorFlow has no gradient for this type of op."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.images import image_by_hand, sampled_between
from tb_gradflow.analyse.edits.written_out import by_arithmetic
from tb_gradflow.analyse.evidence.discrete import SAMPLING
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import is_of_a_dataset
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text, api_of


def rule(suspect: Suspect) -> Verdict | None:
    """Requesting the gradient raises LookupError: the op type has no entry in the registry. Random draws are a separate
    cause; so are datasets, at whose end the gradient is `None` before anything is raised."""
    unregistered = any(edge.passes == "unregistered" for edge in suspect.edges)
    if suspect.op.type in SAMPLING or is_of_a_dataset(suspect.op):
        return None
    return Verdict("no_gradient_registered", "error") if unregistered else None


def message_and_fix(group: Group) -> Text:
    """Augmentation can be moved before the model; ops on weights or predictions cannot."""
    image = group.op is not None and (group.op.api or "").startswith("tf.image.")
    if "non_max_suppression" in api_of(group):
        return Template(
            SIZE + "TensorFlow registers no gradient for {op}, which selects boxes; requesting one raises "
            "`LookupError: gradient registry "
            "has no entry for: {kind}`.",
            "Compute the loss from the boxes and scores that go into {fn}, and call it only for inference.",
        )(group)
    instead = _HAVE_A_GRADIENT.get(group.op.type if group.op is not None else "")
    if instead:
        return Template(_UNREGISTERED, f"Compute the same with an op that has a gradient: {instead}.")(group)
    if image and "glimpse" in api_of(group) and all(edge.input > 0 for edge in group.suspect.edges):
        return Template(
            _UNREGISTERED,
            "{fn} passes no gradient to the positions computed from {them}. Crop softly: weights `tf.nn.relu(1.0 - "
            "tf.abs(rows - positions[..., None]))` for the rows, the same for the columns, then "
            "`tf.einsum('bir,bjc,brcd->bijd', by_row, by_column, images)`; or train the position with a policy "
            "gradient.",
        )(group)
    before = "Move {fn} into the input pipeline, before any trainable layer, or give it" if image else "Give {fn}"
    return Template(
        _UNREGISTERED,
        before
        + " a gradient with `tf.custom_gradient`"
        + ("." if image else ", or compute the same with functions that have one."),
    )(group)


_UNREGISTERED = (
    SIZE + "TensorFlow registers no gradient for {op}; requesting one raises `LookupError: gradient registry has no "
    "entry for: {kind}`."
)

_OF_ROWS = "`tf.math.unsorted_segment_max(values, indices[:, 0], rows)` for the maximum of each row of a sparse matrix"
_OF_BINS = "`tf.math.unsorted_segment_sum(weights, values, size)`"
_HAVE_A_GRADIENT = {"SparseReduceMax": _OF_ROWS, "SparseReduceMaxSparse": _OF_ROWS, "DenseBincount": _OF_BINS}


CAUSE = Cause(
    name="no_gradient_registered",
    meaning="the op type has no entry in the gradient registry: requesting the gradient raises LookupError",
    severity="error",
    fix="move the op into the input pipeline, or `tf.custom_gradient`",
    text=message_and_fix,
    edits=(image_by_hand, sampled_between, by_arithmetic),
)
