"""Sentences and lines of reports and comparisons that only some runs have."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tb_gradflow.errors import LogError
from tb_gradflow.record.report import (
    Diagnosis,
    Edit,
    ExampleGradients,
    Finding,
    GradientReport,
    Tried,
    VariableNorm,
    VariableReport,
)
from tb_gradflow.record.schema import Trained
from tb_gradflow.serve.reports import fixing, page
from tb_gradflow.serve.reports.comparison import SHOWN
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.serve.runs import course, standing
from tb_gradflow.serve.terminal import causes
from tb_gradflow.serve.terminal.causes import all_causes, explanation_of
from tb_gradflow.serve.terminal.example_text import told_of_examples
from tb_gradflow.serve.terminal.terms_text import percent
from tb_gradflow.serve.terminal.text import Look
from tests.store.samples import open_writer, step, trace, write_log


def variable(name: str, status: Any = "connected", norm: float | None = 1.0) -> VariableReport:
    gradient = None if norm is None else GradientReport(norm, norm, norm, 0.0, 0, 0)
    return VariableReport(name, status, (3, 2), "float32", gradient)


def report(*variables: VariableReport, findings: tuple[Finding, ...] = (), run: str = "run") -> Report:
    return Report(Diagnosis(1, 0, 0, "A summary.", variables, findings, ()), run)


def finding(**fields: Any) -> Finding:
    told = Finding("dead_relu", "error", ("a/kernel",), None, None, "It is dead.", "Revive it.", 0, -1, ())
    return replace(told, **fields)


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        (None, ""),
        (ExampleGradients((), None, "the rows depend on each other"), "not known: the rows depend on each other."),
        (
            ExampleGradients((1.0, 3.5, 2.0), None, ""),
            "Row 1 has the largest gradient of the batch, with a norm of 3.5; that of the median row is 2.",
        ),
        (ExampleGradients((1.0, float("nan"), 2.0), None, ""), "these have a gradient that is not finite: 1."),
        (ExampleGradients((float("inf"),) * 7, None, ""), "not finite: 0, 1, 2, 3, 4 and 2 more."),
    ],
)
def test_what_is_known_of_single_rows_is_told_in_a_sentence(examples: ExampleGradients | None, said: str) -> None:
    told = told_of_examples(examples)

    assert told.endswith(said)
    assert bool(told) == bool(said)


def test_rows_that_a_finding_is_about_are_not_told_twice() -> None:
    one_of_many = ExampleGradients((1.0,) * 31 + (500.0,), (0.001,) * 31 + (0.969,), "")

    assert told_of_examples(one_of_many) == ""


@pytest.mark.parametrize(
    ("share", "said"), [(0.0, "0%"), (0.0004, "<0.1%"), (0.349, "34.9%"), (0.9995, ">99.9%"), (1.0, "100%")]
)
def test_a_share_is_nothing_or_all_only_where_it_is_exactly_that(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_report_without_its_run_is_shown_as_text() -> None:
    told = report(variable("a/kernel"), findings=(finding(message="a < b"),))

    assert told._repr_html_().startswith("<pre>run, step 0")
    assert "a &lt; b" in told._repr_html_()
    assert repr(told) == "<Report of run, step 0: A summary.>"
    with pytest.raises(LogError, match="created without its run, so there is no graph to show"):
        told.save_html("page.html")


def test_a_report_in_a_notebook_is_the_page_and_the_text(tmp_path: Path) -> None:
    write_log(tmp_path, steps=2)

    shown = tb_gradflow.open_log(tmp_path).report()._repr_html_()

    assert shown.startswith("<iframe srcdoc=")
    assert "<summary>As text</summary>" in shown
    assert "nondiff_comparison" in shown.partition("<details")[2]


def test_a_page_that_was_not_built_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, steps=2)
    monkeypatch.setattr(page, "VIEWER", tmp_path / "index.js")

    with pytest.raises(LogError, match="the page was not built"):
        tb_gradflow.open_log(tmp_path).report().save_html(tmp_path / "page.html")


def test_an_edit_that_was_tried_is_given_with_its_result() -> None:
    edit = Edit("model.py", 3, 3, "x = tf.round(x)", "x = x + tf.stop_gradient(tf.round(x) - x)")
    trained = Trained(20, (0.6, math.inf), (0.7, 0.7))
    tried = Tried(True, (0.7, 0.6), (VariableNorm("a/kernel", 0.25),), trained=trained, keeps=("shape", "checkpoint"))

    [told] = report(findings=(finding(edit=edit, tried=tried),)).to_dict()["findings"]

    assert told["tried"] == {
        "works": True,
        "loss": [0.7, 0.6],
        "gradient_norm": {"a/kernel": 0.25},
        "trained": {"steps": 20, "loss": [0.6, None], "without": [0.7, 0.7]},
        "keeps": ["shape", "checkpoint"],
    }


def test_a_report_without_variables_and_without_a_fix_says_so() -> None:
    text = str(report(findings=(finding(variables=(), fix=""),)))

    assert text.endswith("No variables.")
    assert "  fix  " not in text


def layers(count: int, prefix: str = "dense", status: Any = "connected", norm: float | None = 1.0) -> Report:
    return report(*(variable(f"model/{prefix}_{number}/kernel", status, norm) for number in range(count)))


class TestOfComparisons:
    def test_many_changes_are_listed_as_far_as_there_is_room(self) -> None:
        told = str(tb_gradflow.compare(layers(SHOWN + 3, status="disconnected", norm=None), layers(SHOWN + 3)))

        assert f"{SHOWN + 3} variables are better" in told
        assert told.count("disconnected → connected") == SHOWN
        assert "  … and 3 more" in told

    def test_many_gradients_of_other_sizes_are_listed_as_far_as_there_is_room(self) -> None:
        told = str(tb_gradflow.compare(layers(SHOWN + 2), layers(SHOWN + 2, norm=1e-6)))

        assert f"larger or smaller ({SHOWN + 2} of {SHOWN + 2}):" in told
        assert "1e+06 times smaller" in told
        assert "  … and 2 more" in told

    def test_variables_that_are_in_one_run_alone_have_no_status_in_the_other(self) -> None:
        comparison = tb_gradflow.compare(
            report(variable("a/kernel")), report(variable("a/kernel"), replace(variable("b/gate"), shape=(7,)))
        )

        assert "absent → connected" in str(comparison)
        assert [each["before"] for each in comparison.to_dict()["variables"] if each["name"] == "b/gate"] == [None]

    def test_a_layer_with_another_number_is_the_same_layer(self) -> None:
        told = str(
            tb_gradflow.compare(report(variable("model/dense/kernel")), report(variable("model/dense_4/kernel")))
        )

        assert "1 variable with different numbers in their names were matched by order." in told

    def test_a_layer_that_was_probably_renamed_is_named(self) -> None:
        told = str(
            tb_gradflow.compare(
                report(variable("model/encoder_block/kernel")), report(variable("model/encoder_blocks/kernel"))
            )
        )

        assert "Probably renamed (same shape, similar name and position):" in told
        assert "model/encoder_block/kernel → model/encoder_blocks/kernel" in " ".join(told.split())

    def test_it_is_shown_as_text_wherever_it_is_shown(self) -> None:
        comparison = tb_gradflow.compare(layers(1), layers(1))

        assert repr(comparison).startswith("<Comparison of run and run: No variable is better or worse")
        assert comparison._repr_html_().startswith("<pre>before  run, step 0")


def test_all_causes_are_listed_with_what_they_mean() -> None:
    text = "\n".join(all_causes(Look()))

    assert "dead_relu  " in text
    assert "nondiff_comparison  error" in text


def test_a_cause_without_a_page_or_with_one_of_another_form_has_no_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "PAGES", tmp_path)
    (tmp_path / "other.md").write_text("# A page", encoding="utf-8")

    assert explanation_of("dead_relu") is None
    assert explanation_of("other") is None


def test_the_beginning_and_the_course_of_findings_are_not_searched_in_large_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, steps=5)
    history = tb_gradflow.open_log(tmp_path).recorded
    assert standing.standing_of(history).first == 0

    monkeypatch.setattr(standing, "MOST_OPS", 5)
    monkeypatch.setattr(course, "MOST_OPS", 5)

    assert standing.standing_of(history).first is None
    told = course.Course().look(history)
    assert (told["steps"], told["complete"]) == ([], True)


def test_a_fault_of_ours_in_one_run_is_told_in_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_log(tmp_path, steps=1)
    history = tb_gradflow.open_log(tmp_path).recorded

    def fails(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(standing, "worst_of", fails)
    told = standing.standing_or_unknown(history)

    assert (told.health, told.summary) == ("unknown", "This run could not be analysed: open it to see why.")
    assert "ZeroDivisionError" in caplog.text


def test_weights_that_are_not_finite_are_dated(tmp_path: Path) -> None:
    """Of the second variable in step 3 and after it, in one chunk and in another."""
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number in range(6):
            good = step(number)
            numbers = bytearray(good.variables)
            if number >= 3:
                struct.pack_into("<4f", numbers, 0, 1.0, 0.1, 3.0 if number > 3 else 0.0, 3.0)
            writer.write_step(replace(good, variables=bytes(numbers)))
            writer.flush()
    log = tb_gradflow.open_log(tmp_path)

    [told] = [each for each in log.report(5).findings if each.cause == "nonfinite_weights"]

    assert told.variables == ("dense/kernel",)
    assert "step 3" in told.message
    assert "nonfinite_weights" not in {each.cause for each in log.report(2).findings}


class TestOfFiles:
    edit = Edit("model.py", 1, 1, "x = 1", "x = 2")

    def test_a_file_that_is_no_text_is_said_to_be_unreadable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "model.py").write_bytes(b"\xff\xfe x = 1")

        with pytest.raises(LogError, match=r"model\.py cannot be read"):
            fixing.apply([self.edit], tmp_path, [self.edit])

    def test_a_file_that_cannot_be_replaced_stays_as_it_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "model.py").write_text("x = 1\n", encoding="utf-8")

        def full(*_: Any, **__: Any) -> Any:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("tempfile.mkstemp", full)
        with pytest.raises(LogError, match=r"model\.py cannot be written: No space left on device"):
            fixing.apply([self.edit], tmp_path, [self.edit])
        assert (tmp_path / "model.py").read_text(encoding="utf-8") == "x = 1\n"
