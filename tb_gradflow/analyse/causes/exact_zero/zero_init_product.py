"""A product with a variable of zeros that does not learn either."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.exact_zero.zero_initialised import has_units_alike
from tb_gradflow.analyse.edits.variables import not_all_zeros
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text


def message_and_fix(group: Group) -> Text:
    if has_units_alike(group.suspect):
        return Template(
            ZERO + "{op} multiplies with zeros, and the layer in front began with zeros, too: all of its units are the "
            "same, learn the same, and stay one unit.",
            'Start kernels with random numbers, `initializer="glorot_uniform"`; only offsets begin at zero.',
        )(group)
    return Template(
        ZERO + "{op} multiplies with a variable that is all zeros and gets no gradient either.",
        'Start one of the two with numbers: `initializer="glorot_uniform"`.',
    )(group)


CAUSE = Cause(
    name="zero_init_product",
    meaning="born at a product with a variable of zeros, or with what such variables make zero, that gets no gradient "
    "either, or that learns the same in every unit because the layer in front is of zeros as well; or at a ReLU or a "
    "square that is flat at such a zero",
    severity="error",
    fix="start one with numbers",
    text=message_and_fix,
    edits=(not_all_zeros,),
)
