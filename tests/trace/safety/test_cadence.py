"""Which steps are recorded, and that `auto` keeps to its share of the training time."""

from __future__ import annotations

import pytest

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.log.cadence import CLOSEST, DENSE_STEPS, Cadence, cadence


def recorded_steps(
    rule: Cadence, steps: int, *, plain: float, recorded: float, own: float = 0.0, compiling: float = 10.0
) -> list[int]:
    """The steps that a training records whose executions take so many seconds, the first of each kind longer; `own` of
    them are before and after what runs."""
    found = []
    first = {True: compiling, False: compiling}
    for step in range(steps):
        due = rule.is_due(step, step == 0)
        found += [step] if due else []
        rule.meter.took((recorded if due else plain) + first[due], recorded=due, own=own)
        first[due] = 0.0
    return found


def test_a_number_and_epochs_are_taken_at_their_word() -> None:
    assert recorded_steps(cadence(3, 0.01), 8, plain=1.0, recorded=9.0) == [0, 3, 6]
    assert recorded_steps(cadence("epoch", 0.01), 8, plain=1.0, recorded=9.0) == [0]


@pytest.mark.parametrize(("overhead", "extra"), [(0.01, 0.2), (0.01, 0.5), (0.05, 0.8), (0.05, 4.0)])
def test_auto_spends_its_share_and_not_more(overhead: float, extra: float) -> None:
    steps, plain = 100_000, 0.2

    found = recorded_steps(cadence("auto", overhead), steps, plain=plain, recorded=plain * (1 + extra))

    spent = (len(found) - 1) * extra * plain  # without the one in which the step was compiled
    assert spent <= overhead * (steps * plain + spent)
    assert spent > 0.8 * overhead * steps * plain


def test_auto_records_the_first_steps_and_then_evenly() -> None:
    found = recorded_steps(cadence("auto", 0.01), 20_000, plain=0.2, recorded=0.3)

    assert found[:DENSE_STEPS] == list(range(DENSE_STEPS))
    gaps = [after - before for before, after in zip(found[DENSE_STEPS:], found[DENSE_STEPS + 1 :], strict=False)]
    assert max(gaps) <= 1.2 * min(gaps)


def test_auto_leaves_out_first_steps_that_take_many_seconds() -> None:
    found = recorded_steps(cadence("auto", 0.01), 300, plain=0.4, recorded=6.0)

    assert found == list(range(5))  # the first does not count, because it may have been compiled


def test_auto_records_fewer_first_steps_if_they_are_eager_and_take_long() -> None:
    rule = cadence("auto", 0.01)
    rule.is_eager = True

    # How much of a recorded step is its own cost is known after the first plain ones.
    assert recorded_steps(rule, 100, plain=0.1, recorded=0.45) == [*range(6), 8]


def test_auto_records_the_end_of_a_fit_that_is_not_too_short() -> None:
    """An extra of half a step is a hundredth of fifty steps, whatever the first ten have cost."""
    rule, found = cadence("auto", 0.01), []
    lengths = (40, 40, 200, 30)
    ends = {sum(lengths[: number + 1]) - 1 for number in range(len(lengths))}
    for step in range(sum(lengths)):
        due = rule.is_due(step, step == 0, step in ends)
        found += [step] if due else []
        rule.meter.took(0.3 if due else 0.2, recorded=due)

    assert found == [*range(DENSE_STEPS), 79, 279]


@pytest.mark.parametrize(("has_moved", "later"), [(None, []), (True, []), (False, [64])])
def test_auto_records_one_more_step_of_a_training_that_has_not_moved(has_moved: bool | None, later: list[int]) -> None:
    rule = cadence("auto", 0.01)
    rule.meter.has_moved = has_moved

    assert recorded_steps(rule, 200, plain=0.01, recorded=1.0) == [*range(DENSE_STEPS), *later]


def test_auto_leaves_steps_between_even_where_recording_is_free() -> None:
    found = recorded_steps(cadence("auto", 0.01), 1_000, plain=0.2, recorded=0.2)

    assert found[DENSE_STEPS:] == list(range(DENSE_STEPS - 1 + CLOSEST, 1_000, CLOSEST))


@pytest.mark.parametrize(("own", "for_recording"), [(0.0, 0.01), (0.0006, 0.007), (0.01, 0.005)])
def test_what_is_done_around_plain_steps_counts_but_leaves_half_for_recording(own: float, for_recording: float) -> None:
    rule, steps, plain = cadence("auto", 0.01), 100_000, 0.2

    found = recorded_steps(rule, steps, plain=plain, recorded=plain * 1.5, own=own)

    spent = (len(found) - 1) * 0.5 * plain
    assert spent == pytest.approx(for_recording * steps * plain, rel=0.02)
    cost = rule.meter.cost()
    assert cost.extra == pytest.approx(spent + own * (steps - len(found)), rel=0.01)


@pytest.mark.parametrize("overhead", [0, -0.1, 1.5, True, "1 %"])
def test_a_share_that_is_none_is_told(overhead: float) -> None:
    with pytest.raises(SetupError, match="overhead must be a share of the training time, above 0 and at most 1, got"):
        cadence("auto", overhead)
