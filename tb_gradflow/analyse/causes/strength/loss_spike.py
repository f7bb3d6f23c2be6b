"""A step whose loss or gradient was far above what was usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.over_time.spikes import Kind, SpikeSeen
from tb_gradflow.analyse.words.forward_pass import in_data_set
from tb_gradflow.analyse.words.phrases import listed_rows
from tb_gradflow.record.report import Finding, Severity
from tb_gradflow.record.schema import Trace

_EXTRAORDINARY = 100.0
"""Rows that make a loss so many times the usual one are worth a look, even if the training gets over them."""


def findings_of_spikes(trace: Trace, spikes: Sequence[SpikeSeen], step: int) -> Iterator[Finding]:
    """Those until a step of this trace."""
    targets = {each.name: number for number, each in enumerate(trace.targets)}
    for each in spikes:
        kind, rows = each.kind, _rows(each)
        yield Finding(
            cause=CAUSE.name,
            severity=_severity(each, kind),
            variables=(),
            op=None,
            source=None,
            message=" ".join(filter(None, (_what(each), _why(each, kind), _after(each)))),
            fix=_fix(each, kind),
            target=targets.get(each.trace.targets[each.spike.target].name, -1),
            culprit=-1,
            path=(),
            examples=rows if kind == "rows" else None,
            began=each.step if each.step < step else None,
        )


def _severity(seen: SpikeSeen, kind: Kind) -> Severity:
    if seen.lasts or kind in ("element", "not_reproducible"):
        return "warning"
    is_extraordinary = kind == "rows" and seen.spike.of == "loss" and seen.value > _EXTRAORDINARY * seen.usual
    return "warning" if is_extraordinary else "info"


def _what(seen: SpikeSeen) -> str:
    spike = seen.spike
    targets = seen.trace.targets
    loss = "loss" if len(targets) == 1 else f"loss `{targets[spike.target].name}`"
    times = f"{seen.value / seen.usual:,.0f} times" if seen.usual else "far above"
    of = f"the {loss}" if spike.of == "loss" else f"the norm of the gradient of the {loss}"
    other = ""
    if spike.of == "gradient":
        other = f"; the {loss}, {spike.loss:.3g}, was still usual"
    return (
        f"In step {seen.step}, {of} was {seen.value:.3g}, {times} what is usual: it was {seen.usual:.3g} in the median "
        f"of the steps before, and at most {spike.highest:.3g} in {spike.steps} of them{other}."
    )


def _why(seen: SpikeSeen, kind: Kind) -> str:
    found, ago = _found(seen), f"the weights of {seen.spike.earlier} steps earlier"
    if seen.spike.earlier == 1:
        ago = "the weights of the step before"
    if kind == "rows":
        rows, trial = _rows(seen), seen.trial("rows")
        assert trial is not None
        place = "its" if len(rows) == 1 else "their"
        still = f"; with {ago} it is still {found['weights']}" if seen.is_usual("weights") is False else ""
        return (
            f"{listed_rows(rows)} of its batch made it so: with row {trial.copied} in {place} place, it is "
            f"{found['rows']}{still}.{in_data_set(rows, seen.data_rows)}"
        )
    if kind == "batch":
        return (
            f"Its batch as a whole made it so, no few rows of it: with {ago} it is {found['weights']}, and with the "
            f"batch of that step {found['batch']}."
        )
    if kind == "not_reproducible":
        return (
            f"The same step, with the same weights, batch and random numbers, gives {found['nothing']} when it runs "
            "again: what computed it, a library or the hardware, has computed something else once."
        )
    if kind == "unknown":
        return _unknown(seen)
    first = (
        f"The weights made it so, not the batch: with {ago} this batch gives {found['weights']}, and the batch of that "
        f"step gives {found['batch']} with the weights of now."
    )
    return f"{first} {_moved(seen, kind)}"


def _moved(seen: SpikeSeen, kind: Kind) -> str:
    moved, steps = seen.furthest, seen.spike.earlier
    during = f"in these {steps} steps" if steps > 1 else "in that step"
    if moved is None:
        return ""
    name = seen.trace.variables[moved.variable].name
    if kind == "element":
        return (
            f"{during[0].upper()}{during[1:]} one element of `{name}` has changed by {moved.largest:.3g}, and all "
            f"others of its {moved.count} together by hardly anything: no optimizer does that."
        )
    far = f"`{name}` has moved by {moved.change:.3g}, its norm was {moved.size:.3g}"
    if kind == "variable":
        return f"{during[0].upper()}{during[1:]} {far}; all other weights have moved far less."
    gradients = f" The gradient was usual until then: at most {max(seen.spike.norms):.3g}." if seen.spike.norms else ""
    if kind == "rate":
        before, now = seen.spike.rates
        return f"The learning rate has gone from {before:.3g} to {now:.3g} {during}, and {far}.{gradients}"
    return f"The update was too long {during}: {far}.{gradients}"


def _unknown(seen: SpikeSeen) -> str:
    if not seen.spike.trials:
        return "Why is not known: the step could not run again."
    if seen.is_usual("nothing"):
        return "Why is not known: the step draws random numbers, and with others it is usual."
    if seen.trial("weights") is None:
        return (
            "Why is not known: no few rows of its batch made it so, and no weights of an earlier step were kept, as "
            "this model is large, or a call runs several steps."
        )
    found = _found(seen)
    return (
        f"Why is not known: no few rows of its batch made it so; with the weights of {seen.spike.earlier} steps "
        f"earlier it is {found['weights']}, and with the batch of that step {found['batch']}."
    )


def _after(seen: SpikeSeen) -> str:
    if seen.lasts is None:
        return ""
    loss = f"the loss of the next recorded steps is around {sorted(seen.later)[len(seen.later) // 2]:.3g}"
    return f"It has lasted: {loss}." if seen.lasts else f"The training got over it: {loss}."


def _fix(seen: SpikeSeen, kind: Kind) -> str:
    if kind == "rows":
        one = len(_rows(seen)) == 1
        return (
            f"Look at {'that row' if one else 'these rows'}: a wrong label or a value that was not scaled does this. "
            "If the data is right, limit what one row can do: `clipnorm=1.0` in the optimizer, or a loss that grows "
            "only linearly, such as `keras.losses.Huber()`."
        )
    if kind == "batch":
        return "Look at the data of that step: another file, another scale, another preprocessing."
    if kind == "element":
        return (
            "Look for code that assigns to it. If there is none, suspect the memory of this machine: train the same "
            "steps on another one."
        )
    if kind == "variable":
        return (
            "Look for what is different about it: an `assign`, an optimizer or a rate of its own, a layer without "
            "normalisation."
        )
    if kind == "rate":
        return (
            "Check the schedule, or the callback that sets the rate; a warm-up after each increase keeps steps short."
        )
    if kind == "update":
        return (
            "A lower learning rate, or a warm-up; with Adam a larger `epsilon` (1e-5) or a smaller `beta_2` (0.95), "
            "where gradients had been small for long; `clipnorm=1.0` limits one step."
        )
    if kind == "not_reproducible":
        return (
            "Run it again on another machine, and without XLA; `tf.config.experimental.enable_op_determinism()` tells "
            "races apart."
        )
    return "Record around that step with `update_freq=1` to see more."


def _found(seen: SpikeSeen) -> dict[str, str]:
    return {
        each.changed: "not finite" if (value := seen.measured(each)) is None else f"{value:.3g}"
        for each in seen.spike.trials
    }


def _rows(seen: SpikeSeen) -> tuple[int, ...]:
    trial = seen.trial("rows")
    return () if trial is None else tuple(sorted(trial.rows))


CAUSE = Cause(
    name="loss_spike",
    meaning="a step between recorded ones, or a recorded one, had a loss or a gradient at least ten times the median "
    "of the steps before it, twice the largest of them, and beyond where the tail of these ends; with what made it so, "
    "found by running it again on copies: rows of its batch, the batch as a whole, the weights (a jump of one element, "
    "one variable, the learning rate, the length of the updates), or nothing that repeats",
    severity="info; warning where the loss stays high, where rows make it a hundred times the usual one, where one "
    "element has jumped, or where the step does not repeat",
    fix="look at the rows; a shorter step",
    headline="A step was far from what is usual.",
)
