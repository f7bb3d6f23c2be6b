"""Variables without a gradient in this step because other steps train them."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict


def waits_its_turn(suspect: Suspect, verdict: Verdict) -> bool:
    """Whether the variable has no gradient because this step trains other parts. A gradient of zero counts only if a
    part was selected: a function may be flat for most of a run, but not for all of it."""
    if suspect.state.variable not in suspect.measured.turns:
        return False
    return suspect.state.status in ("unused", "disconnected") or verdict.cause == "zero_gradient"
