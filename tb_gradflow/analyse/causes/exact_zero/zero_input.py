"""All numbers of the batch are zero."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.exact_zero.zero_factor import factor_made_zero
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.step.measured import Measured, is_empty, is_zero
from tb_gradflow.analyse.words.fields import ZERO, fields, filled
from tb_gradflow.analyse.words.names import Group, Text

# Usual names, in a custom step, of the data from which predictions are computed; labels may all be zero.
_DATA = ("x", "input", "image", "feature")


def rule(suspect: Suspect) -> Verdict | None:
    """Every number of the batch is zero, and the variable, or a value between it and the op where the gradient ends, is
    multiplied by data. A mask that leaves out zeros is a more specific reason."""
    if not zero_data(suspect.measured) or suspect.culprit < 0:
        return None
    nearer = factor_made_zero(suspect)
    if nearer is not None and nearer.cause == "mask_multiplies_to_zero":
        return None
    topology = suspect.topology
    between = topology.made_by(suspect.culprit) | {suspect.culprit}
    return Verdict("zero_input", "warning", NO_OP) if not between.isdisjoint(_with_data(suspect.measured)) else None


def zero_data(measured: Measured) -> str:
    """The name of the only floating-point part of the batch from which predictions are computed, if all of it is zero;
    otherwise empty."""
    parts = [each for each in measured.topology.trace.inputs if each.name.lower().startswith(_DATA)]
    values = [measured.of_row(each.row) for each in parts]
    if len(parts) != 1 or values[0] is None or not is_zero(values[0]) or is_empty(values[0]):
        return ""
    return parts[0].name if "[" not in parts[0].name else ""


def _with_data(measured: Measured) -> frozenset[int]:
    """The products of weights and data."""
    ops = measured.topology.trace.ops

    def search() -> frozenset[int]:
        return frozenset(place for place, op in enumerate(ops) if op.type in PRODUCTS and op.given)

    return measured.once("products with data", search)


def message_and_fix(group: Group) -> Text:
    name = zero_data(group.suspect.measured)
    message = (
        "every value of `{name}` is zero in this batch, so the gradient of everything that is multiplied by it is zero "
        "as well."
    )
    return Text(
        filled(ZERO + message, {**fields(group), "name": name}),
        f"Check the input, `np.count_nonzero({name})`: integers become zeros if they are divided by 255 twice, or "
        "cast after the division; and a batch that contains only padding is all zeros.",
    )


CAUSE = Cause(
    name="zero_input",
    meaning="every value of the only floating-point `x` of the batch (in your own step, an argument called `x...`, "
    "`input...`, `image...` or `feature...`) is zero, and the variable whose gradient is zero is multiplied by data",
    severity="warning",
    fix="check the input",
    text=message_and_fix,
    without_op="the whole batch is zero",
    told_at_once=True,
)
