"""Numbers in a fix that half precision can represent."""

from __future__ import annotations

import re

from tb_gradflow.analyse.words.names import Group, Text

# float16 has no numbers between 0 and 6e-8, nor between 0.9995 and 1, and a slope above 65504 is infinite, such as that
# of a logarithm at 1e-5.
_BESIDE_ONE = re.compile(r"(?<=\b1 [-+] )1e-6\b|(?<=\b1\.0 \+ )1e-6\b")
_ABOVE_ZERO = re.compile(r"\b1e-(?:12|0?[67])\b")


def for_half(group: Group, text: Text) -> Text:
    """The text; if the op computes in half precision, with epsilons that half precision can represent."""
    if group.op is None or all(tensor.dtype != "float16" for tensor in group.op.outputs):
        return text
    fix = _ABOVE_ZERO.sub("1e-4", _BESIDE_ONE.sub("1e-3", text.fix))
    return text if fix == text.fix else Text(text.message, f"{fix} Smaller values are lost in float16.")
