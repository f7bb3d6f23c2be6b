"""Text for terminals of all kinds."""

from __future__ import annotations

import pytest

from tb_gradflow.cli import terminal
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.terminal.text import Look
from tests.serve.test_report import diagnosis, finding, variable


@pytest.mark.parametrize("width", [40, 64, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = variable("a_model_with_a_long_name/" * 5 + "kernel")

    text = Report(diagnosis(finding("error", long.name), variables=(long,)), run="logs/run1").text(Look(width))

    to_be_copied = "mask = tf.sigmoid"
    assert max(len(line) for line in text.splitlines() if to_be_copied not in line) <= width


def test_colours_change_no_word() -> None:
    report = Report(diagnosis(finding("error"), finding("warning"), finding("info")), run="logs/run1")

    coloured = report.text(Look(60, colour=True))

    for code in ("0", "1", "2", "36", "1;31", "1;32", "1;33", "1;34"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == report.text(Look(60))


def test_a_name_cannot_steer_the_terminal() -> None:
    hostile = variable("layer\x1b[2J\u202ekernel")

    text = Report(diagnosis(finding("error", hostile.name), variables=(hostile,)), run="\x1b]0;x\x07").text()

    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("environ", "colour"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_are_asked_for_or_forbidden(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], colour: bool
) -> None:
    """Under a test the output is no terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert terminal.look().colour is colour


@pytest.mark.parametrize(("columns", "width"), [("62", 62), ("20", 40), ("400", 100)])
def test_the_width_of_the_terminal_is_respected(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert terminal.look().width == width


@pytest.mark.parametrize("name", ["", "  ", "\t"])
def test_a_variable_without_a_name_is_called_so(name: str) -> None:
    text = Report(diagnosis(finding("error", name), variables=(variable(name),))).text()

    assert "  for  (no name)" in text
