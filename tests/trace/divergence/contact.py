"""Puts each difference in, and tells how many are found where they begin.

python -m tests.trace.divergence.contact [PART OF A NAME …]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.trace.divergence.injections import INJECTIONS, SAME
from tests.trace.divergence.recorded import Runs, verdict


def main() -> None:
    words = sys.argv[1:]
    right = 0
    listed = [each for each in INJECTIONS if not words or any(word in each.name for word in words)]
    with tempfile.TemporaryDirectory() as directory:
        runs = Runs(Path(directory))
        for each in listed:
            found = runs.of(each.program, each.a, each.b)
            wrong = verdict(each, found)
            right += not wrong
            print(f"{wrong or 'ok'}: {each.name}: {found if words or wrong else found.summary}")
        for name, program, a, b in SAME:
            if words and not any(word in name for word in words):
                continue
            found = runs.of(program, a, b)
            print(f"{'WRONG' if found.differs else 'ok   '} same: {name}: {found}")
    print(f"{right} of {len(listed)} right")


if __name__ == "__main__":
    main()
