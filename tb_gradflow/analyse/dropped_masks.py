"""Layers that do not hand a mask on, so that padding trains like data."""

from __future__ import annotations

from tb_gradflow.analyse.measured import Measured
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import DroppedMask

CAUSE = "mask_dropped"


def masks_dropped(measured: Measured) -> tuple[Finding, ...]:
    """A warning on the first layer after which a gradient arrives at steps that a mask leaves out."""
    for each in measured.topology.trace.dropped_masks:
        padding = measured.of_row(each.row)
        if padding is not None and padding.max_abs > 0:
            return (_finding(each, padding.max_abs),)
    return ()


def _finding(dropped: DroppedMask, largest: float) -> Finding:
    name = f"`{dropped.layer}` ({dropped.type})"
    return Finding(
        cause=CAUSE,
        severity="warning",
        variables=(),
        op=None,
        source=None,
        message=f"Layer {name} is given a mask and does not hand it on, so that padding trains like data: the "
        f"steps that the mask leaves out get a gradient of up to {largest:.1e}.",
        fix=_FIXES.get(dropped.type, _KEPT).format(layer=dropped.layer),
        target=dropped.target,
        culprit=-1,
        path=(),
    )


_KEPT = (
    "Keep the mask and take the padding out behind the layer: `mask = masking.compute_mask(inputs)`, then `x = "
    "layer(x) * keras.ops.cast(mask[..., None], x.dtype)` and `sample_weight` for the loss, or a pooling layer that is "
    "called with `mask=mask`. A layer of your own that works on each step alone hands it on with "
    "`self.supports_masking = True` in `__init__`."
)
_FIXES = {
    "Flatten": "Bring the steps together with a layer that leaves padding out, in the place of `{layer}`: "
    "`keras.layers.GlobalAveragePooling1D()`, or a recurrent layer.",
    "Lambda": "In the place of `{layer}` write a layer with `self.supports_masking = True` in its `__init__` if the "
    "function works on each step alone; if not, give the function an argument `mask` and leave the padding out there.",
}
