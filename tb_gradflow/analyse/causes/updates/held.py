"""Why an update does not change a variable in the measured step itself."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace
from functools import partial

from tb_gradflow.analyse.evidence.requests import is_by_keras
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.step.measured import SQUARE_OVERFLOWS, UPDATE_NORM, WEIGHT_NORM, Measured, is_zero
from tb_gradflow.analyse.step.movement import Moved, movement_of
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, Writer, file_name
from tb_gradflow.record.schema import Deferred, Replaced

# Dtypes of weights with so few digits that small updates are rounded away.
_COARSE = ("float16", "bfloat16")

# Machine epsilon of the dtypes of weights.
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}
_EPSILON_OF_FLOAT32 = 2.0**-23

# At least this share of the elements with a gradient must not move.
_MANY = 0.5

# The epsilon that Adam and similar optimizers add to the size of a gradient, by default 1e-7, with a margin: a gradient
# that is clipped to less moves nothing.
_CLIPPED_TO_NOTHING = 1e-6

# If the computed update is this much larger than the actual one, something held the variable back.
_VISIBLE = 100.0

# Gradients of this size cause an update in every optimizer with a learning rate.
_TELLING = 1e-2

# Adadelta's first updates have the size of the learning rate times the root of its epsilon, 1e-7 by default, whatever
# the gradient is. The original (Zeiler, ADADELTA, 2012) has no learning rate, that is, one. With Keras's default,
# 0.001, it hardly moves weights.
_SMALL_RATE = 0.1
_SMALL_SHARE = 1e-4

# Gradients are accumulated over a few dozen steps at most: a batch of thousands in parts that fit into memory. If a
# variable has not changed for this many recorded steps, that is not the reason.
_LONGEST_WAIT = 64


_BUT = "{they_get} a gradient{line}, but "


def rate_of_zero(suspect: Suspect) -> Verdict | None:
    """The optimizer got a gradient, but its learning rate is exactly zero. A schedule may start or end there; if it
    stays there, the earlier steps show more."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or moved.rate != 0 or not moved.stands_still or moved.optimizer.accumulates > 1:
        return None
    if moved.optimizer.scheduled and suspect.measured.rest is not None:
        return None
    name, optimizer = moved.optimizer.type, "model.optimizer" if is_by_keras(suspect) else "optimizer"
    if moved.optimizer.scheduled:
        fix = "Nothing to fix if the schedule starts or ends at 0."
    elif suspect.measured.moves.get(suspect.state.variable):
        fix = (
            "Earlier steps had one. Find out what sets it to 0: a callback such as `LearningRateScheduler`, whose "
            "function may divide whole numbers, as in `0.1 * (1 // epoch)`, or lines of your own."
        )
    else:
        fix = f"Set one: `{optimizer}.learning_rate.assign(1e-3)`, or `keras.optimizers.{name}(1e-3)`."
    text = Template(f"{_BUT}{name} does not move {{them}}: its learning rate is 0 in this step.", fix)
    return Verdict("gradient_not_applied", "info" if moved.optimizer.scheduled else "warning", NO_OP, text)


def below_resolution(suspect: Suspect) -> Verdict | None:
    """Most elements do not move because learning rate times gradient is smaller than the spacing of numbers there. A
    warning in half precision; near its end, every training reaches this point.
    """
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or moved.rounded < _MANY * (moved.size - moved.zeros):
        return None
    return None if suspect.measured.is_learned(suspect.target) else _rounded(suspect)


def _rounded(suspect: Suspect) -> Verdict | None:
    """The same for most of the elements that do not move, whether or not there is something left to learn."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    dtype = suspect.topology.trace.variables[suspect.state.variable].dtype
    if moved is None or not moved.rounded or moved.rate is None or moved.rounded < _MANY * moved.unmoved:
        return None
    text = Template(
        f"{_BUT}{moved.rounded} of {moved.size} elements do not move: with a learning rate of {moved.rate:.2g} the "
        f"update is smaller than the spacing of `{dtype}` values there.",
        "Keep the weights in float32 and compute in half precision, `keras.mixed_precision.set_global_policy("
        '"mixed_bfloat16")`.'
        if dtype in _COARSE
        else "Nothing to fix if the training is at its end; otherwise, raise the learning rate.",
    )
    return Verdict("gradient_not_applied", "warning" if dtype in _COARSE else "info", NO_OP, text)


def clipped_away(suspect: Suspect) -> Verdict | None:
    """No element moves, the learning rate is not zero, and the optimizer clips gradients to almost nothing."""
    moved = _still(suspect)
    if moved is None or moved.optimizer.accumulates > 1 or not moved.rate or suspect.measured.variables is None:
        return None
    limits = _limits(moved.optimizer.clips)
    spacing = _epsilon(suspect) * float(suspect.measured.variables[suspect.state.variable, WEIGHT_NORM])
    if not limits or (min(limits) >= _CLIPPED_TO_NOTHING and moved.rate * min(limits) >= spacing):
        return None
    text = Template(
        f"{_BUT}{moved.optimizer.type} does not move {{them}}: it clips gradients with `{moved.optimizer.clips}`, and "
        "what remains of them is rounded away.",
        f"Clip less: `{moved.optimizer.clips.partition('=')[0]}=1.0`.",
    )
    return Verdict("gradient_not_applied", "warning", NO_OP, text)


def _limits(clips: str) -> list[float]:
    """The numbers in `clipnorm=1.0, clipvalue=0.5`. In a log from someone else it may be any text."""
    found = []
    for each in clips.split(", "):
        with contextlib.suppress(ValueError):
            found.append(float(each.partition("=")[2]))
    return found


def summed_up(suspect: Suspect) -> Verdict | None:
    """The optimizer accumulates gradients over several steps, and this is not the last of them."""
    moved, variable = _still(suspect), suspect.state.variable
    if moved is None or moved.optimizer.accumulates == 1 or suspect.measured.rest is not None:
        return None
    # Recorded steps are not consecutive: among so many, one would have been the last of its sum.
    if suspect.measured.standstill.get(variable, 0) > moved.optimizer.accumulates:
        return None
    count = moved.optimizer.accumulates
    text = Template(
        f"{_BUT}{moved.optimizer.type} does not move {{them}} in this step: it adds up the gradients of {count} steps "
        f"(`gradient_accumulation_steps={count}`) and applies their mean in the last of them.",
        "Nothing to fix.",
    )
    return Verdict("gradient_not_applied", "info", NO_OP, text)


def waits(suspect: Suspect) -> Verdict | None:
    """Nothing changes the variable in this step: the step adds its gradient to another variable, or updates it under a
    condition. Information, until the better part of a run has passed without a change."""
    measured, variable = suspect.measured, suspect.state.variable
    deferred = deferred_of(suspect)
    if deferred is None or measured.variables is None or measured.is_learned(suspect.target):
        return None
    gradient = suspect.state.gradient
    if gradient is None or is_zero(gradient) or measured.variables[variable, UPDATE_NORM] != 0:
        return None
    if measured.standstill.get(variable, 0) >= _LONGEST_WAIT or (measured.rest is not None and measured.rest.sure):
        return None
    return Verdict("gradient_not_applied", "info", NO_OP, partial(_waits, deferred=deferred))


def deferred_of(suspect: Suspect) -> Deferred | None:
    """How the update of a variable is deferred; `None` if that was not seen."""
    deferred = suspect.topology.trace.deferred
    return next((each for each in deferred if each.variable == suspect.state.variable), None)


def replaced(suspect: Suspect) -> Verdict | None:
    """The step assigns the variable mostly another one's value, after the optimizer has updated it: what the optimizer
    did is gone."""
    by = next((each for each in suspect.topology.trace.replaced if each.variable == suspect.state.variable), None)
    return Verdict("gradient_not_applied", "warning", NO_OP, partial(_replaced, by=by)) if by is not None else None


def constrained(suspect: Suspect) -> Verdict | None:
    """A constraint restores every element. A warning if this holds for all that the loss trains: some variables may
    rightly be at a bound. Or if it always will, because each element is normalised on its own."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or not _is_constrained(suspect, moved):
        return None
    axis = _axis_of_one(suspect, moved)
    text = partial(_constrained, moved=moved, axis=axis)
    loud = axis >= 0 or _all_stand_still(suspect)
    return Verdict("gradient_not_applied", "warning" if loud else "info", NO_OP, text)


def _axis_of_one(suspect: Suspect, moved: Moved) -> int:
    """The axis of length one over which a constraint normalises a variable, so that each element keeps only its sign;
    -1 if it does not."""
    numbers = suspect.measured.variables
    shape = suspect.topology.trace.variables[suspect.state.variable].shape
    if moved.known.constraint != "UnitNorm" or numbers is None or sorted(shape)[:1] != [1]:
        return -1
    ones = math.isclose(numbers[suspect.state.variable, WEIGHT_NORM], math.sqrt(math.prod(shape)), rel_tol=1e-4)
    return shape.index(1) if ones else -1


def _is_constrained(suspect: Suspect, moved: Moved) -> bool:
    """Whether no element moves by more than the rounding of the constraint, although the optimizer got a gradient whose
    update would be visible."""
    if not moved.known.constraint or not moved.rate or moved.optimizer.accumulates > 1:
        return False
    gradient, numbers, variable = suspect.state.gradient, suspect.measured.variables, suspect.state.variable
    if moved.stands_still:
        if gradient is not None and _divided_by(suspect.measured, moved, variable, gradient.max_abs) is not None:
            return False
        # It leaves values above zero alone.
        at_zero = numbers is None or moved.zeros > 0 or numbers[variable, WEIGHT_NORM] == 0
        return _still(suspect) is not None and (at_zero or moved.known.constraint != "NonNeg")
    if gradient is None or numbers is None or moved.known.decay:
        return False
    update, weight = (float(numbers[variable, column]) for column in (UPDATE_NORM, WEIGHT_NORM))
    visible = moved.rate * min(gradient.norm, 1.0) > _VISIBLE * update
    return visible and update <= 2 * _epsilon(suspect) * weight


def _epsilon(suspect: Suspect) -> float:
    return _EPSILON.get(suspect.topology.trace.variables[suspect.state.variable].dtype, _EPSILON_OF_FLOAT32)


def put_back(suspect: Suspect) -> Verdict | None:
    """No element moves, although the optimizer got a gradient that causes an update: information, because it may be
    intended. A warning if the optimizer keeps the square of an earlier gradient, and that is infinite or holds all that
    the loss trains."""
    moved, gradient = _still(suspect), suspect.state.gradient
    if moved is None or gradient is None or moved.rounded or not moved.rate or moved.optimizer.accumulates > 1:
        return None
    before = _divided_by(suspect.measured, moved, suspect.state.variable, gradient.max_abs)
    if before is not None:
        text = _after_a_large_gradient(moved.optimizer.type, *before)
    else:
        text = Template(
            f"{{they_get}} a gradient{{line}}, and {moved.optimizer.type} applied it with a learning rate of "
            f"{moved.rate:.2g}, but no element has changed at the end of this step: something restores the values "
            "after the update.",
            "Nothing to fix if this is intended; otherwise, look for an `assign` after the update.",
        )
    if before is not None and (before[0] > SQUARE_OVERFLOWS or _all_stand_still(suspect)):
        return Verdict("gradient_not_applied", "warning", NO_OP, text)
    if moved.optimizer.type == "Ftrl":
        numbers = suspect.measured.variables
        is_zero_weight = numbers is not None and not numbers[suspect.state.variable, WEIGHT_NORM]
        return Verdict("gradient_not_applied", "info", NO_OP, _AT_ZERO) if is_zero_weight else None
    return Verdict("gradient_not_applied", "info", NO_OP, text) if gradient.max_abs >= _TELLING else None


# They divide by the root of an average or sum of the squares of gradients; Adamax by the largest gradient.
_KEEPING_SQUARES = ("Ada", "Nadam", "RMSprop", "RMSProp", "Lamb")

# After a gradient this many times larger, they divide by so much that an update, about as large as the learning rate
# otherwise, shrinks to less than the spacing of float32.
_LARGER = 1e6


def _divided_by(measured: Measured, moved: Moved, variable: int, gradient: float) -> tuple[float, int] | None:
    """An earlier gradient's largest element that explains why a gradient moves nothing: its square is what the
    optimizer divides by; and its step."""
    name = moved.optimizer.type
    if not name.startswith(_KEEPING_SQUARES) or name.startswith("Adamax"):
        return None
    largest, step = measured.largest_before(variable)
    return (largest, step) if largest > SQUARE_OVERFLOWS or largest > _LARGER * gradient else None


def barely_moved(suspect: Suspect) -> Verdict | None:
    """Adadelta with a learning rate far below one, in a step that hardly changes a weight: information, because its
    updates grow."""
    moved, measured = movement_of(suspect.measured, suspect.state.variable), suspect.measured
    if moved is None or moved.optimizer.type not in _ADADELTAS or moved.rate is None or moved.known.decay:
        return None
    if not 0 < moved.rate < _SMALL_RATE or measured.is_learned(suspect.target):
        return None
    share, name = _share(measured, suspect), moved.optimizer.type
    if not 0 < share < _SMALL_SHARE:
        return None
    text = Template(
        f"{_BUT}{name} changes {{them}} by only {share:.1g} of {{their}} norm in this step: its updates start at about "
        f"a thousandth of its learning rate, {moved.rate:.2g}, whatever the gradient is, and grow slowly.",
        "If the loss hardly falls, use the learning rate of its authors: `"
        + (f"keras.optimizers.{name}" if name == "Adadelta" else f"tf.compat.v1.train.{name}")
        + "(1.0)`.",
    )
    return Verdict("gradient_not_applied", "info", NO_OP, text)


_ADADELTAS = ("Adadelta", "AdadeltaOptimizer")


def out_of_scale(suspect: Suspect) -> Verdict | None:
    """The values of a variable are so large that steps of about the learning rate have hardly changed it in a hundred
    steps or more: information, because they may be right."""
    measured = suspect.measured
    moved, size = movement_of(measured, suspect.state.variable), _typical_size(suspect)
    if moved is None or moved.optimizer.type not in _BY_THE_RATE or not moved.rate or moved.known.constraint:
        return None
    if measured.step + 1 < _MANY_STEPS or size < _LARGE or moved.rate * (measured.step + 1) > _HARDLY * size:
        return None
    return Verdict("gradient_not_applied", "info", NO_OP, partial(_out_of_scale, moved=moved))


# Their steps are about as long as the learning rate, whatever the size of the gradient.
_BY_THE_RATE = ("Adam", "AdamW", "Adamax", "Nadam", "Lion", "AdamOptimizer")
_MANY_STEPS = 100
# Initialisers of weights give values below one, and those of scales and offsets one and zero.
_LARGE = 10.0
_HARDLY = 0.02


def _typical_size(suspect: Suspect) -> float:
    """The root mean square of a variable; 0 if it is not known."""
    numbers, shape = suspect.measured.variables, suspect.topology.trace.variables[suspect.state.variable].shape
    norm = float(numbers[suspect.state.variable, WEIGHT_NORM]) if numbers is not None else 0.0
    return norm / math.sqrt(math.prod(shape)) if norm > 0 and min(shape, default=1) > 0 else 0.0


def _share(measured: Measured, suspect: Suspect) -> float:
    """The norm of a variable's update divided by the variable's norm; 0 if it is not known."""
    if measured.variables is None:
        return 0.0
    numbers = measured.variables[suspect.state.variable]
    return float(numbers[UPDATE_NORM] / numbers[WEIGHT_NORM]) if numbers[WEIGHT_NORM] > 0 else 0.0


def _still(suspect: Suspect) -> Moved | None:
    """How the variable was updated, if no element of it has moved; `None` too where the whole step was skipped."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or not moved.stands_still:
        return None
    return None if moved.optimizer.scaled and _is_any_not_finite(suspect.measured) else moved


def _is_any_not_finite(measured: Measured) -> bool:
    """Whether some variable's gradient contains NaN or infinity: loss scaling skips such a step entirely."""
    gradients = map(measured.of_variable, measured.topology.trace.variable_gradients)
    return any(each is not None and bool(each.nan_count or each.inf_count) for each in gradients)


def _all_stand_still(suspect: Suspect) -> bool:
    """Whether none of the variables that get a gradient from the same loss moves."""
    measured, trace = suspect.measured, suspect.topology.trace

    def search() -> bool:
        entries = [
            entry
            for entry in trace.variable_gradients
            if entry.target == suspect.target
            and (found := measured.of_variable(entry)) is not None
            and not is_zero(found)
        ]
        return all(_is_still(measured, entry.variable) for entry in entries)

    return measured.once(("held", suspect.target), search)


def _is_still(measured: Measured, variable: int) -> bool:
    moved = movement_of(measured, variable)
    return moved is not None and moved.stands_still


def why_held(suspect: Suspect) -> Writer | None:
    """Describes what holds a variable fixed in this step, as measured; `None` if that is not visible."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    is_decayed = moved is None or (moved.optimizer.scheduled and suspect.measured.rest is not None)
    situations = (replaced, waits) if is_decayed else _SITUATIONS
    return next((verdict.text for situation in situations if (verdict := situation(suspect)) is not None), None)


_SITUATIONS = (
    *(replaced, waits, rate_of_zero, _rounded, barely_moved, out_of_scale),
    *(constrained, clipped_away, summed_up, put_back),
)


def _replaced(group: Group, by: Replaced) -> Text:
    other = f"`{group.trace.variables[by.by].name}`"
    share = "the value" if by.share > 1 - 1e-6 else f"{by.share:.3g} times the value"
    them = f"it {share} of {other}" if len(group.variables) == 1 else f"each {share} of another one, such as {other}"
    return Template(
        "{they_get} a gradient{line}, but the optimizer's update does not last: after it, the step assigns "
        f"{them}{_in_brackets(group, by.at)}.",
        f"If {other} should follow, exchange the two in that line: `assign` to {other}. Nothing to fix if "
        "{names} should be held at these values.",
    )(group)


def _waits(group: Group, deferred: Deferred) -> Text:
    """Describes the accumulation, or the condition of the update, as it is in the user's lines."""
    is_one = len(group.variables) == 1
    why = how_deferred(group, deferred)
    if deferred.conditional or deferred.condition_at is not None:
        check = f"that condition{_in_brackets(group, deferred.condition_at)}"
    else:
        why.append("this step does not apply the sum")
        check = "that a step applies the sum"
    told = ", and ".join(why)
    return Template(
        "{they_get} a gradient{line}, and no element changes in this step: "
        + f"{'it waits for its turn' if is_one else 'they wait for their turn'}. {told[0].upper()}{told[1:]}.",
        f"Nothing to fix. If {'it never changes' if is_one else 'they never change'}, check {check}.",
    )(group)


def how_deferred(group: Group, deferred: Deferred) -> list[str]:
    """What the user's lines do to the gradients, and to the update."""
    why = []
    if deferred.summed:
        gradients = "its gradient to that" if len(group.variables) == 1 else "their gradients to those"
        why.append(f"{_at(group, deferred.summed_at, 'the step')} adds {gradients} of other steps")
    if deferred.conditional:
        why.append(f"the update runs only under a condition{_in_brackets(group, deferred.condition_at)}")
    elif deferred.condition_at is not None:
        code = group.trace.sources[deferred.condition_at].code
        why.append(
            f"Python decided `{code}`{_in_brackets(group, deferred.condition_at)} once, while the step was compiled, "
            f"and left out the update"
        )
    return why


def _at(group: Group, source: int | None, otherwise: str) -> str:
    """The call in one of the user's lines, with its location."""
    if source is None:
        return otherwise
    call = _ADDING.search(group.trace.sources[source].code)
    return f"{f'`{call[0]}`' if call else 'the line'}{_in_brackets(group, source)}"


_ADDING = re.compile(r"[\w.\[\]]+\.(?:assign|assign_add|assign_sub|scatter_add)\b")


def _in_brackets(group: Group, source: int | None) -> str:
    if source is None:
        return ""
    line = group.trace.sources[source]
    return f" ({file_name(line.file)}:{line.line})"


def _constrained(group: Group, moved: Moved, axis: int) -> Text:
    updates = [movement_of(group.suspect.measured, variable) for variable in group.variables]
    written = list(dict.fromkeys(each.known.constraint for each in updates if each is not None))
    names = " and ".join("a function of your own" if each in ("", "<lambda>") else f"`{each}`" for each in written)
    their = "{their} constraint" if len(written) == 1 else "{their} constraints"
    rounding = "" if moved.stands_still else " by more than rounding"
    why, fix = _CONSTRAINTS.get(moved.known.constraint, ("", "start inside the bound, or remove the constraint"))
    if axis >= 0:
        why = f" It normalises over axis {axis}, which has length one here: of each element only the sign is left."
        shape = group.trace.variables[group.variables[0]].shape
        other = max(range(len(shape)), key=lambda each: shape[each])
        fix = "Remove the constraint."
        if shape[other] > 1:
            fix = f"Normalise over the other axis, `keras.constraints.UnitNorm(axis={other})`, or r{fix[1:]}"
        return Template(f"{_BUT}{their}, {names}, undoes every update of {moved.optimizer.type}.{why}", fix)(group)
    undo = f"undo{'es' if len(written) == 1 else ''} the update of {moved.optimizer.type}"
    return Template(
        f"{_BUT}{their}, {names}, {undo}: no element has changed in this step{rounding}.{why}",
        "Nothing to fix if this bound is intended, and other batches lead away from it. If {names} should be trained, "
        f"{fix}.",
    )(group)


# How a Keras constraint holds a whole variable fixed, and what to write instead.
_CONSTRAINTS = {
    "NonNeg": (
        " The gradient would make the elements negative: they are at zero.",
        "start with values above zero, or remove the constraint",
    ),
}

_AT_ZERO = Template(
    f"{_BUT}Ftrl keeps {{them}} at exactly zero, as it does with weights whose sum of gradients stays below its "
    "`l1_regularization_strength`.",
    "Nothing to fix if most weights should stay at zero; otherwise, reduce `l1_regularization_strength`.",
)


def _after_a_large_gradient(name: str, largest: float, step: int) -> Template:
    clip = "`tf.clip_by_value`" if name.endswith("Optimizer") else f"`keras.optimizers.{name}(clipvalue=1.0)`"
    fix = f"Fix what made the gradient that large in step {step}; until then, clip it, {clip}."
    what = f"{_BUT}{name} does not move {{them}} any more: in step {step} an element of the gradient was {largest:.2g}"
    if largest > SQUARE_OVERFLOWS:
        return Template(
            what + ", its square is above the largest float32, and the optimizer divides by the root of an average of "
            "squares, which is infinite since then.",
            fix + " This training does not recover: start again, or from a checkpoint before that step.",
        )
    return Template(
        what + ". The optimizer divides by the root of an average of squares, and that is still so large that the "
        "update is rounded away.",
        fix,
    )


def _out_of_scale(group: Group, moved: Moved) -> Text:
    steps, rate = group.suspect.measured.step + 1, moved.rate or 0.0
    size = min(_typical_size(replace(group.suspect, state=state)) for state in group.states)
    return Template(
        f"{_BUT}a step of {moved.optimizer.type} is about as long as its learning rate, {rate:.2g}, and {{their}} "
        f"values are around {size:.3g}: {steps} steps change them by about {rate * steps / size:.1%} at most.",
        "Nothing to fix if these values are right. Otherwise, let the variable hold a number around one and multiply "
        "it where it is used; or train {them} with a larger learning rate.",
    )(group)
