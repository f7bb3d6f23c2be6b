"""A product with a variable of zeros that does not learn either."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.variables import not_all_zeros
from tb_gradflow.analyse.words.fields import ZERO, Template

CAUSE = Cause(
    name="zero_init_product",
    meaning="becomes zero at a product with a variable of zeros, or with a value that such variables make zero, that "
    "gets no gradient either; or at a ReLU or a square, whose derivative at such a zero is zero",
    severity="error",
    fix="initialise one with nonzero values",
    text=Template(
        ZERO + "{op} multiplies by a variable that is all zeros and gets no gradient either.",
        'Initialise one of the two with nonzero values: `initializer="glorot_uniform"`.',
    ),
    edits=(not_all_zeros,),
)
