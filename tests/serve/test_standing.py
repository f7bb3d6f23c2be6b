"""How runs are, in a line each: their order, and since when."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tb_gradflow.api import open_log
from tb_gradflow.errors import LogError
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.serve.runs import standing
from tb_gradflow.serve.runs.background import Background
from tb_gradflow.serve.runs.standing import Standing, standing_of, worst_first
from tb_gradflow.serve.terminal.standing_text import lines_of
from tb_gradflow.serve.terminal.text import Look
from tests.serve.test_report import diagnosis, finding
from tests.store.samples import BEGAN, open_writer, session, step, trace, write_log


def test_a_standing_says_how_the_last_step_is(tmp_path: Path) -> None:
    write_log(tmp_path, steps=3)

    found = standing_of(open_log(tmp_path).recorded)

    assert found == Standing(
        health="error",
        summary="1 of 2 trainable variables gets no gradient: < in model.py:17 blocks it.",
        cause="nondiff_comparison",
        place="model.py:17",
        first=0,
        step=2,
        steps=3,
        loss=0.5,
        has_loss=True,
        recorded=BEGAN + 2,
    )


def test_of_findings_the_worst_is_told_and_information_is_none() -> None:
    assert standing.worst_of([finding("info"), finding("warning")]) == finding("warning")
    assert standing.worst_of([finding("warning"), finding("error")]) == finding("error")
    assert standing.worst_of([finding("info")]) is None


@pytest.mark.parametrize("began", range(8))
def test_the_first_step_with_trouble_is_the_one_from_which_it_holds(
    began: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, steps=8)
    history = open_log(tmp_path).recorded
    asked: list[int] = []

    def diagnose(number: int) -> Diagnosis:
        asked.append(number)
        return diagnosis(finding("error" if number >= began else "info"))

    monkeypatch.setattr(history, "diagnose", diagnose)

    at_last = Diagnosis(1, 7, 0, "", (), (finding("error"),), ())
    assert standing.first_trouble(history, history.index(), at_last) == began
    assert len(asked) <= 4


def test_a_run_without_a_step_has_a_standing_and_one_without_anything_has_none(tmp_path: Path) -> None:
    with open_writer(tmp_path / "structure") as writer:
        writer.write_trace(trace())
    open_writer(tmp_path / "nothing").close()

    found = standing_of(open_log(tmp_path / "structure").recorded)

    assert (found.health, found.step, found.loss, found.recorded) == ("error", -1, None, 1_700_000_000.0)
    with pytest.raises(LogError, match="nothing has been recorded yet"):
        standing_of(open_log(tmp_path / "nothing").recorded)


def test_a_loss_that_is_not_finite_is_null(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        writer.write_step(step(0, loss=float("nan")))

    found = standing_of(open_log(tmp_path).recorded)
    assert (found.loss, found.has_loss) == (None, True)


def test_a_loss_that_was_not_recorded_is_not_called_not_finite(tmp_path: Path) -> None:
    """As that of the first target of a nested tape."""
    plain = trace()
    first = replace(plain.targets[0], measured=False)
    nested = {"outer": replace(plain, targets=(first, *plain.targets)), "none": replace(plain, targets=(first,))}
    losses = {"outer": (float("nan"), 0.5), "none": (float("nan"),)}
    for name, made in nested.items():
        with open_writer(tmp_path / name) as writer:
            writer.write_trace(made)
            writer.write_step(replace(step(0), losses=losses[name]))

    found = {name: standing_of(open_log(tmp_path / name).recorded) for name in nested}

    assert {name: (each.loss, each.has_loss) for name, each in found.items()} == {
        "outer": (0.5, True),
        "none": (None, False),
    }
    assert "not finite" not in "".join(lines_of(list(found.items()), Look(width=200, colour=False)))


def test_errors_come_before_warnings_and_the_newest_before_others() -> None:
    given = [
        ("healthy", Standing("healthy", "", recorded=9)),
        ("old", Standing("error", "", recorded=1)),
        ("warning", Standing("warning", "", recorded=8)),
        ("unknown", Standing("unknown", "")),
        ("new", Standing("error", "", recorded=2)),
    ]

    assert [name for name, _ in worst_first(given)] == ["new", "old", "warning", "unknown", "healthy"]


def test_who_asks_waits_for_a_while_and_gets_the_rest_later() -> None:
    made: list[int] = []
    released = threading.Event()

    def make(number: int) -> int:
        if number >= 2:
            released.wait()
        made.append(number)
        return number

    background: Background[int, int] = Background()
    wanted = {number: (lambda number=number: make(number)) for number in range(40)}

    while len(first := background.ask(wanted, 0.05)) < 2:
        pass
    released.set()
    while len(found := background.ask(wanted, 0.1)) < 40:
        pass

    assert first == {0: 0, 1: 1}
    assert found == {number: number for number in range(40)}
    assert sorted(made) == list(range(40)), "each is made once"
    assert background.ask({}, 0.1) == {}


def test_an_answer_that_failed_is_asked_for_again() -> None:
    background: Background[str, int] = Background()

    def fail() -> int:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        background.ask({"a": fail}, 5)
    assert background.ask({"a": lambda: 1}, 5) == {"a": 1}


def test_sessions_of_one_place_do_not_mix(tmp_path: Path) -> None:
    write_log(tmp_path, steps=2)
    write_log(tmp_path, steps=5, of=session(1_700_000_900_000))

    assert standing_of(open_log(tmp_path).recorded).steps == 5
