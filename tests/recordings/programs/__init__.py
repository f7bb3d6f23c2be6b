"""Programs of a few lines that `record` runs: each reaches another form of edit, or a reason for not offering one.

Each defines a function `loss` of the variable `w`, or of those in the list `variables`; or a compiled `model` and its
`data`; or a training step `step`, which is called twice. What is said about each, with the exact text of its edits, is
in `expected/programs.txt`.
"""

from __future__ import annotations

from tests.recordings.programs import (
    calls,
    conditions,
    custom,
    exits,
    methods,
    mixed,
    models,
    pictures,
    positions,
    rounded,
    singular,
    tapes,
    variables,
)
from tests.recordings.programs.text import HEAD

PROGRAMS: dict[str, str] = {
    **conditions.COMPARED,
    **conditions.MASKED,
    **conditions.BRANCHES,
    **singular.ROOTS,
    **singular.LOGARITHMS,
    **singular.QUOTIENTS,
    **singular.EXPONENTIALS,
    **conditions.CHOICES,
    **positions.POSITIONS,
    **methods.METHODS,
    **rounded.ROUNDED,
    **rounded.WRITTEN_OUT,
    **pictures.PICTURES,
    **rounded.DRAWN,
    **exits.LEFT,
    **exits.SETTINGS,
    **variables.VARIABLES,
    **tapes.TAPES,
    **models.MODELS,
    **custom.CUSTOM,
    **calls.STARRED,
    **calls.ALONE,
    **mixed.FURTHER,
}


def text_of(name: str) -> str:
    """The whole program."""
    return PROGRAMS[name] if name in calls.ALONE else HEAD + PROGRAMS[name]
