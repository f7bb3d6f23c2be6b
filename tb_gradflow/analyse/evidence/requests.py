"""Whether anybody requested a gradient."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect


def nobody_asked(suspect: Suspect) -> bool:
    return suspect.state.entry is not None and suspect.state.entry.outcome == "not_asked"
