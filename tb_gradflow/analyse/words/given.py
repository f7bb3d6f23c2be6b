"""Words for gradients that `summary.gradients` was given, and of which nobody knows how they were computed."""

from __future__ import annotations

from tb_gradflow.analyse.causes.by_hand import has_grown
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, Writer

_CHECK = "`tb_gradflow.check_gradients(loss_fn, args, gradient)` compares them with finite differences"


def _zero(group: Group) -> Text:
    if group.verdict.severity == "info":
        return Template(
            "{they_get} a gradient of exactly zero, and the loss is next to zero: nothing is left to learn in this "
            "batch.",
            "Nothing to repair.",
        )(group)
    return Template(
        "{they_have} been given a gradient of exactly zero{line}. How it was computed is not recorded.",
        "Look at how it is computed. Finite differences give zeros where a function rounds, or where the step is "
        f"smaller than what changes the loss; {_CHECK}, and names a step that is good.",
    )(group)


def _nonfinite(group: Group) -> Text:
    return Template(
        "{they_have} been given {size}{line}. How the gradient was computed is not recorded.",
        f"Look at how it is computed; {_CHECK}.",
    )(group)


def _huge(group: Group) -> Text:
    factor = has_grown(group.suspect)
    if factor:
        return Template(
            "The training diverges: the loss is " + f"{factor:.1g} times that of the first recorded step, and "
            "{names} {is_given} {size}{line}.",
            "A lower learning rate, by a factor of ten at first. `tb_gradflow.check_gradients(loss_fn, args, gradient, "
            "learning_rate=rate)` says which one does not overshoot.",
        )(group)
    return Template(
        "{they_have} been given {size}{line}. How it was computed is not recorded.",
        f"Look at how it is computed, and at the size of what it is computed from; {_CHECK}.",
    )(group)


def _tiny(group: Group) -> Text:
    return Template(
        "{they_have} been given {size}{line}. How it was computed is not recorded.",
        f"Look at the size of the loss and of what moves it: both want to be about one; {_CHECK}.",
    )(group)


WRITERS: dict[str, Writer] = {
    "zero_gradient": _zero,
    "not_finite": _nonfinite,
    "exploding_recurrence": _huge,
    "vanishing_depth": _tiny,
}
