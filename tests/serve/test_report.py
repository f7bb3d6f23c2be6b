from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tb_gradflow.errors import UnhealthyGradients
from tb_gradflow.record.report import (
    Cosine,
    Diagnosis,
    Evidence,
    Finding,
    GradientReport,
    OpReport,
    Severity,
    SourceReport,
    Status,
    TermReport,
    TermVariable,
    VariableReport,
)
from tb_gradflow.serve.reports.report import Report

SOURCE = SourceReport("model.py", 17, "mask = tf.sequence_mask(threshold, width)")


def finding(severity: Severity = "error", *variables: str) -> Finding:
    return Finding(
        cause="nondiff_comparison",
        severity=severity,
        variables=variables or ("step_filter/threshold",),
        op=OpReport("step_filter/Less", "Less"),
        source=SOURCE,
        message="`tf.sequence_mask` only compares `step_filter/threshold`.",
        fix="Write a soft mask:\n    mask = tf.sigmoid(threshold - positions)",
        target=0,
        culprit=4,
        path=(1, 4, 6),
    )


def variable(name: str, status: Status = "connected", norm: float | None = 0.0123) -> VariableReport:
    gradient = None if norm is None else GradientReport(norm, 0.01, 0.005, 0.5, 0, 0)
    return VariableReport(name, status, (2, 3), "float32", gradient)


def diagnosis(*findings: Finding, variables: tuple[VariableReport, ...] = ()) -> Diagnosis:
    shown = variables or (variable("dense/kernel"), variable("step_filter/threshold", "disconnected", None))
    return Diagnosis(1, 120, 0, "1 of 2 trainable variables gets no gradient.", shown, findings, ("Whether it rains.",))


def test_the_report_has_the_form_that_others_rely_on() -> None:
    text = "Moving `step_filter/threshold` by 0.3 changes the loss from 0.69 to 0.7; its gradient is None."
    evidence = Evidence("influence", "step_filter/threshold", "loss", 0.01, None, text)

    report = Report(diagnosis(replace(finding(), evidence=(evidence,))))

    assert json.loads(json.dumps(report.to_dict())) == {
        "format": 1,
        "healthy": False,
        "variables": [
            {
                "name": "dense/kernel",
                "status": "connected",
                "shape": [2, 3],
                "dtype": "float32",
                "gradient": {
                    "norm": 0.0123,
                    "max_abs": 0.01,
                    "mean_abs": 0.005,
                    "zero_fraction": 0.5,
                    "nan_count": 0,
                    "inf_count": 0,
                },
            },
            {
                "name": "step_filter/threshold",
                "status": "disconnected",
                "shape": [2, 3],
                "dtype": "float32",
                "gradient": None,
            },
        ],
        "findings": [
            {
                "cause": "nondiff_comparison",
                "severity": "error",
                "variables": ["step_filter/threshold"],
                "op": {"name": "step_filter/Less", "type": "Less"},
                "source": {"file": "model.py", "line": 17, "code": "mask = tf.sequence_mask(threshold, width)"},
                "message": "`tf.sequence_mask` only compares `step_filter/threshold`.",
                "fix": "Write a soft mask:\n    mask = tf.sigmoid(threshold - positions)",
                "edit": None,
                "tried": None,
                "evidence": [
                    {
                        "kind": "influence",
                        "of": "step_filter/threshold",
                        "on": "loss",
                        "change": 0.01,
                        "gradient": None,
                        "text": text,
                    }
                ],
                "examples": None,
            }
        ],
        "verdict": {"kind": "nothing_found", "text": "", "ruled_out": []},
        "terms": None,
    }


def test_terms_have_the_form_that_others_rely_on() -> None:
    taught = TermVariable("encoder/kernel", 0.75, 0.9, (Cosine("recon", -0.5), Cosine("size", None)))
    terms = (TermReport("kl", SOURCE, 0.5, 0, 0.1, (taught,)), TermReport("recon", None, None, 0, 1.0, ()))
    report = Report(replace(diagnosis(), terms=terms))

    assert json.loads(json.dumps(report.to_dict()))["terms"] == [
        {
            "name": "kl",
            "source": {"file": SOURCE.file, "line": SOURCE.line, "code": SOURCE.code},
            "value": 0.5,
            "variables": {"encoder/kernel": {"norm": 0.75, "share": 0.9, "cosine": {"recon": -0.5, "size": None}}},
        },
        {"name": "recon", "source": None, "value": None, "variables": {}},
    ]


def test_a_norm_that_json_cannot_hold_is_null() -> None:
    report = Report(diagnosis(variables=(variable("v", "inf", float("inf")),)))

    assert json.dumps(report.to_dict(), allow_nan=False)
    assert report.to_dict()["variables"][0]["gradient"]["norm"] is None


@pytest.mark.parametrize(("severity", "healthy"), [("error", False), ("warning", False), ("info", True)])
def test_a_report_is_healthy_without_errors_and_warnings(severity: Severity, healthy: bool) -> None:
    assert Report(diagnosis(finding(severity))).healthy is healthy


def test_variables_are_found_by_name() -> None:
    assert Report(diagnosis()).variables["step_filter/threshold"].status == "disconnected"


def test_the_text_says_everything_once() -> None:
    assert str(Report(diagnosis(finding()), run="logs/run1")).splitlines() == [
        "logs/run1, step 120",
        "1 of 2 trainable variables gets no gradient.",
        "",
        "ERROR  nondiff_comparison",
        "  `tf.sequence_mask` only compares `step_filter/threshold`.",
        "  at   model.py:17",
        "         mask = tf.sequence_mask(threshold, width)",
        "  op   step_filter/Less (Less)",
        "  for  step_filter/threshold",
        "  fix  Write a soft mask:",
        "           mask = tf.sigmoid(threshold - positions)",
        "",
        "Variables: 1 connected, 1 disconnected",
        "  connected     dense/kernel           gradient norm 0.0123",
        "  disconnected  step_filter/threshold  no gradient",
        "",
        "Not known: Whether it rains.",
    ]


def test_the_text_of_a_large_model_shows_the_variables_that_matter() -> None:
    many = tuple(variable(f"layer_{number}/kernel") for number in range(100))
    bad = tuple(variable(f"bad_{number}", "disconnected", None) for number in range(30))
    about_all = finding("error", *(each.name for each in bad))

    text = str(Report(diagnosis(about_all, variables=(*many, *bad))))

    assert "for  bad_0, bad_1, bad_2, bad_3, bad_4, bad_5 and 24 more" in text
    assert "Variables: 100 connected, 30 disconnected" in text
    assert "layer_7/kernel" not in text
    assert "… and 110 more" in text


def test_counts_of_what_is_not_finite_are_told() -> None:
    gradient = GradientReport(1.0, 1.0, 1.0, 0.0, 3, 2)
    sick = replace(variable("v", "nan"), gradient=gradient)

    assert "gradient norm 1, 3 NaN, 2 Inf" in str(Report(diagnosis(variables=(sick,))))


def test_a_gradient_without_a_finite_value_has_no_norm() -> None:
    sick = replace(variable("v", "nan"), gradient=GradientReport(0.0, 0.0, 0.0, 0.0, 3, 0))

    assert "3 NaN, no finite value" in str(Report(diagnosis(variables=(sick,))))
    assert "norm" not in str(Report(diagnosis(variables=(sick,))))


def test_asserting_health_raises_with_the_text() -> None:
    with pytest.raises(UnhealthyGradients, match=r"ERROR  nondiff_comparison") as raised:
        Report(diagnosis(finding())).assert_healthy()

    assert isinstance(raised.value, AssertionError)


def test_asserting_health_lets_expected_variables_pass() -> None:
    report = Report(diagnosis(finding("error", "teacher/kernel", "teacher/bias")))

    report.assert_healthy(expected=["teacher/*"])
    with pytest.raises(UnhealthyGradients):
        report.assert_healthy(expected=["teacher/kernel"])
    Report(diagnosis(finding("info"))).assert_healthy()


class _Printed:
    """As IPython's printer."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str, /) -> None:
        self.said += text


def test_where_a_notebook_shows_no_html_all_of_the_text_is_there() -> None:
    report, printed = Report(diagnosis(finding())), _Printed()

    report._repr_pretty_(printed, cycle=False)

    assert printed.said == report.text()
    assert "fix  Write a soft mask:" in printed.said
