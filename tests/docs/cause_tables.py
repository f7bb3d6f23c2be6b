"""Makes the tables of docs/causes.md from the causes; the sentences around them are written by hand.

python -m tests.docs.cause_tables
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tb_gradflow.analyse.causes.catalogue import BY_FAMILY, FAMILIES
from tb_gradflow.analyse.causes.cause import Cause

PAGE = Path(__file__).parents[2] / "docs" / "causes.md"

_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


def made_from(page: str) -> str:
    """The page with the tables as the causes are now; each stands under the heading of its family."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    families = {f"## {heading}": family for family, heading in FAMILIES.items()}
    headings = [part.partition("\n")[0] for part in parts]
    missing = families.keys() - set(headings)
    assert not missing, f"{PAGE.name} has no heading {sorted(missing)}"
    return "".join(
        _with_table(part, BY_FAMILY[families[heading]]) if heading in families else part
        for heading, part in zip(headings, parts, strict=True)
    )


def _with_table(part: str, causes: Sequence[Cause]) -> str:
    table = "\n".join(_lines(causes)) + "\n"
    heading, _, rest = part.partition("\n")
    if _TABLE.search(rest) is None:
        return f"{heading}\n\n{table}{rest}"
    return f"{heading}\n" + _TABLE.sub(lambda _: table, rest, count=1)


def _lines(causes: Sequence[Cause]) -> Iterator[str]:
    yield "| cause | meaning and evidence | severity | fix |"
    yield "|---|---|---|---|"
    for cause in causes:
        yield f"| `{cause.name}` | {cause.meaning} | {cause.severity} | {cause.fix} |"


if __name__ == "__main__":
    PAGE.write_text(made_from(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
