"""Numbers in a fix that half precision can hold."""

from __future__ import annotations

import re

from tb_gradflow.analyse.words.names import Group, Text

# float16 has nothing between 0 and 6e-8 nor between 0.9995 and 1, and a slope above 65504 is infinite: that of a
# logarithm at 1e-5, for one.
_BESIDE_ONE = re.compile(r"(?<=\b1 [-+] )1e-6\b|(?<=\b1\.0 \+ )1e-6\b")
_ABOVE_ZERO = re.compile(r"\b1e-(?:12|0?[67])\b")


def for_half(group: Group, text: Text) -> Text:
    """The text; where the op computes in half precision, with numbers to keep away from a point that are not lost."""
    if group.op is None or all(tensor.dtype != "float16" for tensor in group.op.outputs):
        return text
    fix = _ABOVE_ZERO.sub("1e-4", _BESIDE_ONE.sub("1e-3", text.fix))
    return text if fix == text.fix else Text(text.message, f"{fix} Smaller values are lost in float16.")
