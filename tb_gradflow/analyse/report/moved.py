"""A sentence in a message about variables that move without a gradient."""

from __future__ import annotations

from tb_gradflow.analyse.step.measured import UPDATE_NORM, WEIGHT_NORM
from tb_gradflow.analyse.step.movement import movement_of, why_moved
from tb_gradflow.analyse.words.names import Group, Text, quoted

# Weight decay shrinks every weight by the same share, up to the rounding of a norm in float32.
_SAME_SHARE = 1e-3

# For weights that are not finite it does not matter what moves them; and variables that will learn from the next step
# on may move.
_NO_MATTER = ("nonfinite_weights", "nonfinite_update", "nonfinite_input", "zero_init_by_design")


def moved_anyway(group: Group) -> Text:
    """What moves the group's variables without a gradient; empty if nothing moves them. Momentum applies gradients of
    earlier steps; weight decay shrinks several variables by the same share.
    """
    measured = group.suspect.measured
    if group.verdict.cause in _NO_MATTER:
        return Text("", "")
    still_zero = [state.variable for state in group.states if state.status == "zero" and not state.penalised]
    moved = [variable for variable in still_zero if measured.moved(variable)]
    if not moved or measured.variables is None:
        return Text("", "")
    names = [group.trace.variables[variable].name for variable in moved]
    they, them = ("It moves", "it") if len(moved) == len(group.states) == 1 else ("They move", "them")
    if len(moved) < len(group.states):
        they = f"{quoted(names)} {'moves' if len(moved) == 1 else 'move'}"
        them = "it" if len(moved) == 1 else "them"
    updates = [found for variable in moved if (found := movement_of(measured, variable)) is not None and found.moved]
    if updates:
        reasons = list(dict.fromkeys(map(why_moved, updates)))
        length = max(float(measured.variables[variable, UPDATE_NORM]) for variable in moved)
        return Text(
            f" {they} anyway, by {length:.2g} in this step: {'; '.join(reasons)}.",
            f" To keep {them} fixed in such steps, apply only the gradients of the other variables, "
            "`optimizer.apply_gradients([(g, v) for g, v in zip(gradients, variables) if v is not ...])`, or use "
            "plain `keras.optimizers.SGD()`, which keeps no state.",
        )
    length = max(float(measured.variables[variable, UPDATE_NORM]) for variable in moved)
    share = _common_share(group, moved)
    if share:
        return Text(
            f" {they} anyway, each by {share:.2g} of its norm in this step: this is weight decay.",
            f" To exclude {them}, call `optimizer.exclude_from_weight_decay(var_names=[...])`.",
        )
    return Text(
        f" {they} anyway, by {length:.2g} in this step: not because of this gradient, but because of what the "
        f"optimizer remembers of earlier ones (Adam, momentum), weight decay, or your own code.",
        f" To keep {them} fixed in such steps, use an optimizer without state, `keras.optimizers.SGD()`.",
    )


def _common_share(group: Group, moved: list[int]) -> float:
    """The share of its norm by which each of several variables has moved; 0 if the shares differ."""
    numbers = group.suspect.measured.variables
    if numbers is None or len(moved) < 2:
        return 0.0
    sizes = [(float(numbers[variable, UPDATE_NORM]), float(numbers[variable, WEIGHT_NORM])) for variable in moved]
    if any(weight <= 0 for _, weight in sizes):
        return 0.0
    shares = [update / weight for update, weight in sizes]
    return shares[0] if max(shares) <= min(shares) * (1 + _SAME_SHARE) else 0.0
