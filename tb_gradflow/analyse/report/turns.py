"""A sentence in a message about variables without a gradient that other steps train."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.waiting import waits_its_turn
from tb_gradflow.analyse.words.names import Group, Text


def in_turn(group: Group, text: Text) -> Text:
    """The text of the group, with what other steps show about it."""
    turns = group.suspect.measured.turns
    if not waits_its_turn(group.suspect, group.verdict) or not turns.keys() >= set(group.variables):
        return text
    last = max(turns[variable] for variable in group.variables)
    them = "it" if len(group.variables) == 1 else "them"
    return Text(
        f"{text.message} Other steps do give {them} a gradient, most recently step {last}.",
        f"Nothing to fix if these steps are meant to differ. Otherwise: {text.fix[:1].lower()}{text.fix[1:]}",
    )
