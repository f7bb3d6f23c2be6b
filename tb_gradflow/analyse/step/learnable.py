"""What the experiments with one batch say: can the model learn it, and if it can, what is then not the reason."""

from __future__ import annotations

import ntpath
from collections.abc import Sequence

from tb_gradflow.analyse.graph.comparisons import DIFFERENCES, is_averaged
from tb_gradflow.analyse.graph.probabilities import is_binary
from tb_gradflow.analyse.graph.stopped import STOPS, keeps_value_alone
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.record.graph import CERTAIN, LEARNED
from tb_gradflow.record.schema import BatchFit, Descent

_SAME = 1e-3
"""By which part losses differ that are the same up to rounding, which grows from step to step."""

_LITTLE = 0.9
"""Little is learned from the inputs if what is left of the loss is a larger part of what is left without them. A model
with a few weights learns that much of 32 rows whatever their targets are, and so it may where there is little to
learn."""

_STANDS_STILL, _HARDLY_MOVES = 0.99, 0.9
"""If a larger part is left, the loss does not move; or it hardly does, if it has not fallen in the run either."""

_MOVES = 0.8
"""If a smaller part is left, it does."""

_TIMES = 4
"""So many times as many steps as one batch is trained for."""

_SETTLED = 0.02
"""A loss that falls by a smaller part in the last quarter of the steps has come to its end."""

_STEADY = 0.15
"""Of the whole fall; one that has far to go falls by a quarter of it in a quarter of the steps."""


def fit_in(measured: Measured) -> BatchFit | None:
    """That of the run, if it is known in this step; `None` otherwise."""
    fits = measured.topology.trace.fits
    return fits[-1] if fits and len(measured.topology.trace.targets) == 1 and measured.step >= fits[-1].step else None


def targets_in(measured: Measured, target: int) -> tuple[float, float] | None:
    """The range of the targets that a loss subtracts from what the model returns, or the reverse; of several, of the
    largest; `None` if it does not, or if they were not measured."""
    topology = measured.topology
    way, ops = topology.gradient(target), topology.trace.ops
    compared = [each for each in topology.trace.ranges if ops[each.op].type in DIFFERENCES and way.hops[each.op] >= 0]
    known = [found for each in compared if (found := measured.range_of(each.op, each.input)) is not None]
    return max(known, key=lambda found: max(map(abs, found)), default=None)


def same_targets(measured: Measured) -> str:
    """That all targets of several recorded steps are the same number; empty if they are not, or were not measured."""
    topology, ops = measured.topology, measured.topology.trace.ops
    requested = range(len(topology.trace.targets))
    # A difference may be anything, such as `1 - tanh(x) ** 2`, unless a loss averages it. Other products with a
    # logarithm have weights, or a mask.
    of_targets = [
        (each.op, each.input)
        for each in topology.trace.ranges
        if (
            any(is_averaged(topology, each.op, target) for target in requested)
            if ops[each.op].type in DIFFERENCES
            else ops[each.op].type == "Mul" and is_binary(topology, each.op)
        )
    ]
    # Those of other steps have to be read.
    if len({end for place in of_targets for end in measured.range_of(*place) or (0.0, 1.0)}) != 1:
        return ""
    courses = [measured.value_courses.get(place, ()) for place in of_targets]
    found = {end for course in courses for each in course for end in (each.smallest, each.largest)}
    if len(found) != 1 or min(map(len, courses)) < _FEWEST:
        return ""
    return f"All targets of the recorded steps are {found.pop():.3g}: if that is not meant, look where `y` is made."


_FEWEST = 8
"""In how many steps: a batch may have a single row, and classes may follow each other."""


def teaches_nothing(fit: BatchFit) -> str:
    """That the model learns nothing from the inputs of the batch; empty if it does, or if that is not known."""
    pairs = [
        (one, other) for one in _of(fit, "nothing") for other in _of(fit, "inputs_alike") if one.rate == other.rate
    ]
    are_same = all(abs(one.best - other.best) <= _SAME * abs(other.best) for one, other in pairs)
    if not pairs or not are_same or not _compared_without_inputs(fit):
        return ""
    return (
        f"the model learns nothing from its inputs. {_steps(fit)} lower the loss {_at_best(fit)}, and just so where "
        "each row has the inputs of the first one: to the model, all rows look alike. Look at its inputs as it gets "
        "them, at their scale, and at what the first layers make of them."
    )


def _compared_without_inputs(fit: BatchFit) -> tuple[float, float] | None:
    """The least loss, with inputs and without; `None` if the model learns the batch, or if that is not known."""
    tried, alike = _of(fit, "nothing"), _of(fit, "inputs_alike")
    if not tried or not alike or min(each.left for each in tried) <= LEARNED:
        return None
    best, without = (min(listed, key=lambda each: each.best) for listed in (tried, alike))
    return (best.best, without.best) if _is_settled(best) and _is_settled(without) else None


def _is_settled(descent: Descent) -> bool:
    known = [each for each in descent.losses if each is not None]
    then = min(known[: 3 * len(known) // 4], default=descent.first)
    fall, rounding = then - descent.best, _SAME * abs(then)
    return fall <= _SETTLED * abs(then) and (fall <= rounding or fall <= _STEADY * (descent.first - descent.best))


def targets_too_large(fit: BatchFit) -> str:
    """That the loss stands still because of the size of the targets; empty if it does not, or for another reason."""
    own, scaled = _own(fit), next(iter(_of(fit, "targets_scaled")), None)
    limit = _STANDS_STILL if fit.began is None else _HARDLY_MOVES
    if own is None or scaled is None or not own.left > limit or not scaled.left < _MOVES:
        return ""
    return (
        f"{_steps(fit)} lower the loss from {own.first:.4g} by {_percent(own)}; with the same targets brought to a "
        f"mean of 0 and a standard deviation of 1, by {_percent(scaled)}. Train with such targets, `(y - y.mean()) / "
        "y.std()` with the numbers of the training data, and turn predictions back."
    )


def steps_too_short(fit: BatchFit) -> str:
    """That the loss of the run stands still because its optimizer hardly moves the weights; empty otherwise."""
    own, best = _own(fit), _best(fit)
    if fit.began is None or own is None or best is None or not own.left > _STANDS_STILL or best.left > LEARNED:
        return ""
    return (
        f"{_steps(fit)} lower the loss from {own.first:.3g} by {_percent(own)} with its own optimizer; "
        f"{_with(best)}, to {best.best:.3g}. {_course(fit).capitalize()}"
    )


def is_not_the_reason(fit: BatchFit) -> str:
    """What can be ruled out, because the model learns the batch; empty if it does not."""
    own, best = _own(fit), _best(fit)
    if best is None or best.left > LEARNED:
        return ""
    of_own = f"; with its own optimizer, to {own.best:.3g}" if own is not None and own is not best else ""
    what = "The gradient, the learning rate and" if own is not None and own.left <= LEARNED else "The gradient and"
    return (
        f"{what} the size of the model: {_steps(fit)} lower the loss from {best.first:.3g} to {best.best:.3g} "
        f"{_with(best)}{of_own}."
    )


def has_not_fallen(fit: BatchFit) -> str:
    """That the loss of the run has not fallen, although the model learns a batch, or that it learns little of one;
    empty otherwise."""
    if fit.began is None:
        return ""
    if (constant := _best_constant(fit)) is not None:
        first = _of(fit, "nothing")[0].first
        return (
            f"{_course(fit).capitalize()} But the model has learned from its inputs: the loss of that batch is "
            f"{first:.3g}, and {constant:.3g} at best where each row has the inputs of the first one."
        )
    if is_not_the_reason(fit):
        if _is_too_early(fit):
            return ""
        return (
            f"But {_course(fit)} The model can learn the batch of that step by heart, so what it learns from one batch "
            "does not help with the next: check that each target belongs to its inputs, and that these say something "
            "of it."
        )
    found = _compared_without_inputs(fit)
    if found is not None and found[0] > _LITTLE * found[1] > 0:
        return (
            f"But {_course(fit)} {_steps(fit)} lower it {_at_best(fit)}; and to {found[1]:.4g} where each row has the "
            "inputs of the first one: the inputs say little of what the loss compares with, or the model cannot "
            "compute it from them."
        )
    return ""


def has_another_gradient(measured: Measured, fit: BatchFit) -> str:
    """That the loss of the run has risen, no step of any length lowers that of one batch, and a `stop_gradient` takes
    part of it out of the gradient; empty otherwise. At its least, a loss cannot be lowered either, but has not risen
    either."""
    tried = _of(fit, "nothing")
    lowered = any(each.best < each.first - _ROUNDING * abs(each.first) for each in tried)
    if len(tried) < _FEWEST_RATES or lowered or not _has_risen(fit):
        return ""
    trace = measured.topology.trace
    sources = [trace.sources[place] for op in _stops(measured) if (place := trace.ops[op].source) is not None]
    places = " and ".join(sorted({f"{ntpath.basename(each.file)}:{each.line}" for each in sources}))
    if not places:
        return ""
    return (
        f"But {_course(fit)} {_steps(fit)} never lower it, {_rates(tried)}: the gradient that the optimizer gets is "
        f"not that of this loss. `stop_gradient` ({places}) takes part of it out: if that is not meant, remove it."
    )


_FEWEST_RATES = 3
"""Of learning rates that were tried: a single one may be too long."""

_ROUNDING = 1e-5


def _has_risen(fit: BatchFit) -> bool:
    return fit.began is not None and fit.ended is not None and fit.ended - fit.began > _RISEN * abs(fit.began)


_RISEN = 0.1
"""Losses of single batches differ by less than this part of their mean over several steps."""


def _stops(measured: Measured) -> list[int]:
    """Each `stop_gradient` that a value computed from variables goes through on its way to the loss, where the rest of
    that way has a gradient."""
    topology = measured.topology
    arrives = topology.gradient(0).hops
    readers = {op for listed in topology.readers for op in listed}
    return [
        op
        for kind in STOPS
        for op in topology.by_type.get(kind, ())
        if any(arrives[user] >= 0 for user in topology.onward(op))
        and not readers.isdisjoint(topology.made_by(op))
        and not keeps_value_alone(topology, op)
    ]


def says_nothing(measured: Measured) -> str:
    """That an accuracy says nothing of the loss, or something else; empty if none does."""
    for metric in measured.topology.trace.metrics:
        if min(metric.right, metric.close) >= CERTAIN:
            continue
        why = f"it is {metric.right:.3g} for predictions without an error, {metric.wrong:.3g} for those of other rows"
        if metric.right >= CERTAIN:
            how = "divides logits at 0.5" if "threshold" in metric.instead else "counts numbers that are equal"
            why = f"it is {metric.close:.3g} for predictions that all are on the right side, because it {how}"
        instead = 'not all of the targets are numbers of classes; for numbers of another kind, use `"mae"`'
        if metric.instead:
            instead = f"`metrics=[{metric.instead}]` is 1 for them"
        return f"But do not go by the metric `{metric.name}`: {why}; {instead}."
    return ""


def _best_constant(fit: BatchFit) -> float | None:
    """The least loss without inputs, if a model that was not trained on the batch alone is better; `None` if it is not,
    or if that is not known."""
    tried, alike = _of(fit, "nothing"), _of(fit, "inputs_alike")
    best = min(alike, key=lambda each: each.best, default=None)
    if not tried or best is None or not _is_settled(best) or not 0 < tried[0].first < _BETTER * best.best:
        return None
    return best.best


_BETTER = 0.75
"""By chance, a model that has learned nothing is better than a constant by less."""


def _is_too_early(fit: BatchFit) -> bool:
    """Whether the run has been too short to have learned several batches, at the pace of its optimizer with one."""
    own = _own(fit)
    if own is None:
        return True
    moved = (at for at, loss in enumerate(own.losses) if loss is not None and loss < _MOVES * own.first)
    return fit.step < max(_TIMES * _count(fit), _LATER * next(moved, len(own.losses)))


_LATER = 10
"""So many times as many steps as move the loss of one batch: what fits one batch need not fit the next."""


def _course(fit: BatchFit) -> str:
    return (
        f"the loss has {'risen' if _has_risen(fit) else 'hardly fallen'}: it was {fit.began:.3g} in the first steps, "
        f"and {fit.ended:.3g} in the last ones until step {fit.step}."
    )


def _of(fit: BatchFit, changed: str) -> Sequence[Descent]:
    return [each for each in fit.descents if each.changed == changed and each.best == each.best]


def _own(fit: BatchFit) -> Descent | None:
    return next((each for each in _of(fit, "nothing") if each.by == "own"), None)


def _best(fit: BatchFit) -> Descent | None:
    return min(_of(fit, "nothing"), key=lambda each: each.left, default=None)


def _count(fit: BatchFit) -> int:
    return max((len(each.losses) - 1 for each in fit.descents), default=0)


def _steps(fit: BatchFit) -> str:
    rows = f"the {fit.rows} rows" if fit.rows > 0 else "the batch"
    return f"{_count(fit)} steps with {rows} of step {fit.step} alone"


def _percent(descent: Descent) -> str:
    return f"{100 * (1 - descent.left):.2g} %"


def _at_best(fit: BatchFit) -> str:
    tried = _of(fit, "nothing")
    return f"from {tried[0].first:.4g} to {min(each.best for each in tried):.4g} at best, {_rates(tried)}"


def _rates(tried: Sequence[Descent]) -> str:
    rates = [f"{each.rate:g}" for each in tried if each.rate is not None]
    adam = f"Adam at rates of {', '.join(rates[:-1])} and {rates[-1]}" if len(rates) > 1 else "Adam"
    return f"with {'its own optimizer and with ' if tried[0].by == 'own' else ''}{adam}"


def _with(descent: Descent) -> str:
    return "with its own optimizer" if descent.rate is None else f"with Adam at a rate of {descent.rate:g}"
