"""A product with a variable of zeros that does not learn either."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.exact_zero.zero_initialised import has_units_alike
from tb_gradflow.analyse.edits.variables import not_all_zeros
from tb_gradflow.analyse.evidence.zeros import zero_factors
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text

_FLAT_AT_ZERO = frozenset({"Relu", "Relu6", "Square", "Abs", "ReluGrad", "Relu6Grad"})


def message_and_fix(group: Group) -> Text:
    if has_units_alike(group.suspect):
        return Template(
            ZERO + "{op} multiplies by zeros, and the layer before it started with zeros as well: all of its units are "
            "equal, learn the same, and stay equal.",
            'Initialise kernels with random numbers, `initializer="glorot_uniform"`; only biases may start at zero.',
        )(group)
    factors = sorted(zero_factors(group.suspect))
    if group.verdict.severity != "error":
        name = f"`{group.trace.variables[factors[0]].name}`" if factors else "a variable"
        return Template(
            ZERO + f"{{op}} multiplies by {name}, which is not trained, and is zero in this step.",
            f"Nothing to fix if a callback or a schedule raises {name} later. Otherwise, start it at another value, or "
            "train it.",
        )(group)
    if group.op is not None and group.op.type in _FLAT_AT_ZERO:
        return Template(
            ZERO + "{op} is given zeros, at which it is flat, because a variable in front of it started at zero and "
            "gets no gradient either.",
            'Initialise that variable with random numbers: `initializer="glorot_uniform"`.',
        )(group)
    factor = f"`{group.trace.variables[factors[0]].name}`, which" if len(factors) == 1 else "a variable that"
    return Template(
        ZERO + f"{{op}} multiplies by {factor} is all zeros and gets no gradient either.",
        'Initialise one of the two with random numbers: `initializer="glorot_uniform"`.',
    )(group)


CAUSE = Cause(
    name="zero_init_product",
    meaning="the gradient becomes zero at a product with a variable of zeros, or with a value that such variables make "
    "zero, and that variable gets no gradient either, or learns the same in every unit because the layer before it is "
    "all zeros as well; or it becomes zero at a ReLU or a square that is flat at such a zero. Info if that variable is "
    "not trained, such as a weight that a callback raises; a warning once it has been zero for 64 steps",
    severity="error; info or warning if the variable is not trained",
    fix="initialise one with random numbers",
    text=message_and_fix,
    edits=(not_all_zeros,),
)
