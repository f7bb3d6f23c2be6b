"""A mask gets lost, so that padding is treated as data."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.graph.op_sets import COPIES
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.names import called, layer_of, place_of, source_of
from tb_gradflow.record.report import Finding, SourceReport
from tb_gradflow.record.schema import DroppedMask


def masks_dropped(measured: Measured) -> tuple[Finding, ...]:
    """A warning at the first place after which a gradient arrives at masked steps: a layer, or an op that uses a masked
    tensor outside of layers."""
    lost = measured.topology.trace.dropped_masks
    for each in (*(each for each in lost if each.how != "unused"), *(each for each in lost if each.how == "unused")):
        padding = measured.of_row(each.row)
        if padding is not None and padding.max_abs > 0:
            return (_finding(measured.topology, each, padding.max_abs),)
    return ()


def _finding(topology: Topology, dropped: DroppedMask, largest: float) -> Finding:
    trace = topology.trace
    first = _taker_of(topology, dropped) if dropped.how == "unused" else _first_of(topology, dropped)
    source = source_of(trace, first)
    return Finding(
        cause=CAUSE.name,
        severity="warning",
        variables=(),
        op=None,
        source=SourceReport(source.file, source.line, source.code) if source is not None else None,
        message=f"{_what(topology, dropped, first)}, so padding is treated as data: the masked steps get a gradient of "
        f"up to {largest:.1e}.{_no_line(topology, dropped, first)}",
        fix=_fix(topology, dropped, first),
        target=dropped.target,
        culprit=-1,
        path=topology.influence(dropped.target).from_op(first) if first >= 0 else (),
    )


def _what(topology: Topology, dropped: DroppedMask, first: int) -> str:
    name = f"`{dropped.layer}` ({dropped.type})"
    if dropped.how == "dropped":
        return f"Layer {name} is given a mask but does not pass it on"
    if dropped.how == "mixed":
        return f"Layer {name} passes its mask on, but computes the other steps from padding too"
    taker = called(topology.trace, first) + place_of(topology.trace, first) if first >= 0 else "what takes it"
    return f"Layer {name} returns a tensor with a mask, but {taker}, which is not a layer, ignores the mask"


def _no_line(topology: Topology, dropped: DroppedMask, first: int) -> str:
    """Why the line is not named: Keras runs the ops of a functional model from a list, and does not record which code
    created the list."""
    if dropped.how != "unused" or first < 0 or topology.trace.ops[first].source is not None:
        return ""
    inside = layer_of(topology.trace, first)
    if not any(each.name == inside and each.type in _OF_TENSORS for each in topology.trace.layers):
        return ""
    return " The line is not known: Keras does not keep which line of your code added an op to a functional model."


# Models that Keras builds from the tensors between an input and an output.
_OF_TENSORS = ("Functional", "Sequential")


def _fix(topology: Topology, dropped: DroppedMask, first: int) -> str:
    if dropped.how == "mixed":
        return _MIXED.replace("{layer}", dropped.layer)
    if dropped.how == "dropped":
        return _FIXES.get(dropped.type, _OWN).replace("{layer}", dropped.layer)
    instead = (
        "" if first < 0 or topology.trace.ops[first].constants else _INSTEAD.get(topology.trace.ops[first].type, "")
    )
    return instead + (_BY_HAND if instead else _BY_HAND[0].upper() + _BY_HAND[1:])


def _first_of(topology: Topology, dropped: DroppedMask) -> int:
    """The first op of the layer that leads to the loss; -1 if there is none."""
    hops, ops = topology.influence(dropped.target).hops, range(len(topology.trace.ops))
    return next((op for op in ops if hops[op] >= 0 and layer_of(topology.trace, op) == dropped.layer), -1)


def _taker_of(topology: Topology, dropped: DroppedMask) -> int:
    """The first op that uses the tensor and leads to the loss, except a product with data, which may be the mask; -1 if
    there is none."""
    if dropped.op < 0:
        return -1
    ops, hops = topology.trace.ops, topology.influence(dropped.target).hops
    copies = walked([dropped.op], lambda op: [user for user in topology.onward(op) if ops[user].type in COPIES])
    takers = sorted({user for op in copies for user in topology.onward(op) if ops[user].type not in COPIES})
    leading = [op for op in takers if hops[op] >= 0]
    return next((op for op in leading if not topology.has_factor_of_data(op)), leading[0] if leading else -1)


# Code that keeps padding out; at `keep` the layer is told to propagate the mask. Keras infers the output shape of a
# Lambda without a mask.
ZEROS = (
    "keras.layers.Lambda(lambda x, mask=None: x * keras.ops.cast(mask[..., None], x.dtype), output_shape=lambda shape: "
    "shape{keep})"
)
FORWARD = "mask=lambda inputs, mask=None: mask"
_EMPTIED = "Set padding to zero in front of `{layer}`: `" + ZEROS.format(keep="") + "`"
_HANDED_ON = "Let it pass the mask on: `layer.supports_masking = True`, where `layer` is `{layer}`"
MASKED_MAXIMUM = (
    "keras.layers.Lambda(lambda x, mask=None: keras.ops.max(keras.ops.where(mask[..., None], x, -1e9), axis=1), "
    "output_shape=lambda shape: (shape[0], shape[2]))"
)
_OWN = (
    "If `{layer}` processes each step separately, set `self.supports_masking = True` in its `__init__`. Otherwise, "
    "give its `call` an argument `mask`, exclude the padding there, and return the mask of what remains from "
    "`compute_mask`."
)
_CONVOLUTION = (
    "Set padding to zero in front of `{layer}`: `"
    + ZEROS.format(keep=", " + FORWARD)
    + '`. With `padding="same"` the layer can pass the mask on, `layer.supports_masking = True`, where `layer` is '
    "`{layer}`."
)
_MAXIMUM = "Exclude padding from the maximum. Instead of `{layer}`, use `" + MASKED_MAXIMUM + "`."
_FLATTENED = _EMPTIED + "; or replace it with a layer that ignores padding: `keras.layers.GlobalAveragePooling1D()`."

_MIXED = (
    "Normalise each step separately, `keras.layers.LayerNormalization()`; or set padding to zero "
    "in front of `{layer}`: `" + ZEROS.format(keep=", " + FORWARD) + "`."
)

# What to write instead of an op that ignores the mask of a tensor, by op type.
_INSTEAD = {
    **dict.fromkeys(("AddV2", "Add"), "Use `keras.layers.Add()([x, y])`, which passes the mask on; or "),
    "Sub": "Use `keras.layers.Subtract()([x, y])`, which passes the mask on; or ",
    "Mul": "Use `keras.layers.Multiply()([x, y])`, which passes the mask on; or ",
    "Maximum": "Use `keras.layers.Maximum()([x, y])`, which passes the mask on; or ",
    "Minimum": "Use `keras.layers.Minimum()([x, y])`, which passes the mask on; or ",
    "ConcatV2": "Use `keras.layers.Concatenate()([x, y])`, which passes the mask on; or ",
    "Mean": "Use `keras.layers.GlobalAveragePooling1D()(x)`, which ignores padding; or ",
}
_BY_HAND = (
    "exclude padding yourself, `x * keras.ops.cast(mask[..., None], x.dtype)`, or give the mask to the layer that "
    "should use it, `layer(x, mask=mask)`, with `mask = embedding.compute_mask(words)` of the layer that created it."
)

# By the Keras class that drops a mask: see docs/masks.md, which is generated from Keras itself.
_FIXES = {
    **dict.fromkeys(
        ("Conv1D", "Conv2D", "Conv3D", "SeparableConv1D", "SeparableConv2D", "DepthwiseConv1D", "DepthwiseConv2D"),
        _CONVOLUTION,
    ),
    **dict.fromkeys(("EinsumDense", "RMSNormalization"), _HANDED_ON + "."),
    **dict.fromkeys(("Flatten", "Reshape", "Permute"), _FLATTENED),
    **dict.fromkeys(
        [
            f"{kind}{axes}D"
            for kind in (
                *("AveragePooling", "MaxPooling", "AdaptiveAveragePooling", "AdaptiveMaxPooling", "UpSampling"),
                *("ZeroPadding", "Cropping", "GlobalAveragePooling", "GlobalMaxPooling"),
            )
            for axes in (1, 2, 3)
        ],
        _EMPTIED + ".",
    ),
    "GlobalMaxPooling1D": _MAXIMUM,
    "Lambda": "If the function processes each step separately, let `{layer}` pass the mask on: `keras.layers.Lambda("
    "function, "
    + FORWARD
    + ")`. Otherwise, give the function an argument `mask`, `lambda x, mask=None: ...`, and exclude the padding there; "
    "the layer then needs `output_shape=` as well.",
}


CAUSE = Cause(
    name="mask_dropped",
    meaning="a Keras layer is given a mask but does not pass it on, or computes the other steps from padding too, or "
    "an op outside of any layer takes a tensor with a mask; and a gradient arrives at the masked steps: padding is "
    "treated as data",
    severity="warning",
    fix="set padding to zero, or use a layer that passes the mask on",
    headline="Padding is treated as data: a mask gets lost.",
)
