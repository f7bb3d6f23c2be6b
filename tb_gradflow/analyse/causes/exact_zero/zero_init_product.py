"""A product with a variable of zeros that does not learn either."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.variables import not_all_zeros
from tb_gradflow.analyse.words.fields import ZERO, Template

CAUSE = Cause(
    name="zero_init_product",
    meaning="born at a product with a variable of zeros, or with what such variables make zero, that gets no gradient "
    "either; or at a ReLU or a square that is flat at such a zero",
    severity="error",
    fix="start one with numbers",
    text=Template(
        ZERO + "{op} multiplies with a variable that is all zeros and gets no gradient either.",
        'Start one of the two with numbers: `initializer="glorot_uniform"`.',
    ),
    edits=(not_all_zeros,),
)
