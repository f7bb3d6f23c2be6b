"""A product with a variable that started at zero, or close to it, and learns."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.gradient_sizes import SINGLE_DECADES, read_at, steepest
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS, zero_values
from tb_gradflow.analyse.step.measured import VANISHING_BELOW
from tb_gradflow.analyse.words.fields import SIZE, Template


def small_factor_by_design(suspect: Suspect) -> Verdict | None:
    """A product with a variable that starts close to zero and is learning: ConvNeXt's layer scale."""
    most, place = steepest(suspect)
    if most < SINGLE_DECADES or suspect.type_of(place) != "Mul":
        return None
    factors = [read_at(suspect, edge.op) for edge in suspect.topology.trace.ops[place].inputs]
    small = [factor for factor in factors if factor not in (None, suspect.state.variable)]
    learning = any(suspect.measured.learns(factor) for factor in small if factor is not None)
    return Verdict("zero_init_by_design", "info", place) if learning else None


def zero_initialised_further_on(suspect: Suspect) -> Verdict | None:
    """Several paths: one leads through a product with zeros that learn, and the others cancel. An example is a
    variational posterior that starts as the prior itself, so that a kernel or its inducing points have no effect yet.
    Once the zeros have moved, the product passes a gradient, whatever the other paths add up to.
    """
    topology, target = suspect.topology, suspect.target
    readers = topology.readers[suspect.state.variable]
    for op, zeros in suspect.measured.once(("learning zeros", target), lambda: _products_with_learning_zeros(suspect)):
        made_of = topology.made_by(op)
        if not made_of.isdisjoint(readers) and (topology.made_by(zeros) | {zeros}).isdisjoint(readers):
            return Verdict("zero_init_by_design", "info", op)
    return None


def _products_with_learning_zeros(suspect: Suspect) -> list[tuple[int, int]]:
    """The products at which a gradient of normal size arrives and of which one factor is zero, because variables that
    learn started at zero; with that factor."""
    measured, zeros = suspect.measured, zero_values(suspect.measured)
    found = []
    for place, op in enumerate(suspect.topology.trace.ops):
        arriving = measured.of_op(suspect.target, place) if op.type in PRODUCTS else None
        if arriving is None or arriving.max_abs < VANISHING_BELOW:
            continue
        factors = [edge.op for edge in op.inputs if edge.op >= 0]
        learning = [factor for factor in factors if any(measured.learns(each) for each in zeros[factor] or ())]
        found.extend([(place, learning[0])] if learning else [])
    return found


CAUSE = Cause(
    name="zero_init_by_design",
    meaning="the gradient becomes zero at a product with a variable that started at zero and trains, as in LoRA's "
    "first step; or a "
    "product with a tiny one shrinks it by four orders of magnitude, as ConvNeXt's layer scale does",
    severity="info",
    fix="nothing",
    text=Template(
        SIZE + "{op} multiplies by a variable that started at zero, or close to it, and is learning.",
        "Nothing to fix: this gradient grows as that variable does.",
    ),
    told_at_once=True,
)
