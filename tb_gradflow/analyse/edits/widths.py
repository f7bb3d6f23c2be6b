"""Other widths of the soft forms that edits write: which one trains depends on the size of a program's values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tb_gradflow.record.report import Edit

NEAR = 2
"""How many of them are tried in any case; the others only if none trains."""

# The width of a soft step, or the temperature of a softmax, as edits write it, and others that are tried. Wider ones: a
# narrow one is flat beside its threshold. The last ones are for pixels.
_OTHERS = {"0.1": ("0.5", "2.0", "20.0", "100.0"), "0.5": ("1.0", "2.0", "20.0", "100.0")}
_WIDTH = re.compile(r"(?<= / )0\.[15](?=[),])")


def with_other_widths(edit: Edit) -> Iterator[Edit]:
    """The same edit with other widths of its soft form, the nearest first; none if it has none."""
    widths = set(_WIDTH.findall(edit.after)) - set(_WIDTH.findall(edit.before))
    if len(widths) == 1:
        (width,) = widths
        for other in _OTHERS[width]:
            yield replace(edit, after=re.sub(rf"(?<= / ){re.escape(width)}(?=[),])", other, edit.after))
