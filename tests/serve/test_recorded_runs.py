"""Reports, pages and comparisons of the logs that real programs left: what users see of all kinds of findings."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import tb_gradflow
from tb_gradflow.serve.runs.standing import standing_of
from tests.recordings.logs import group, names, opened

REPAIRED = list(group("repaired"))
SOME = names()[::12]
WITH_TERMS = [name for name in names() if name.startswith("cases/") and '"terms":[{' in group("cases")[name[6:]]]


@pytest.mark.parametrize("name", REPAIRED)
def test_a_comparison_with_the_repaired_program_says_what_is_gone(name: str, tmp_path: Path) -> None:
    before, now = opened(f"cases/{name}", tmp_path / "before"), opened(f"repaired/{name}", tmp_path / "now")
    causes = {finding.cause for finding in before.report().findings if finding.severity != "info"}
    left = {finding.cause for finding in now.report().findings if finding.severity != "info"}

    difference = tb_gradflow.compare(before, now)

    gone = {change.finding.cause for change in difference.findings if change.fate == "went"}
    assert causes - left <= gone
    told = difference.to_dict()
    json.dumps(told, allow_nan=False)
    text = str(difference)
    assert text.splitlines()[-1].strip()
    assert all(cause in text for cause in gone)


@pytest.mark.parametrize("name", SOME)
def test_what_is_found_stands_in_the_text_the_numbers_and_the_page(name: str, tmp_path: Path) -> None:
    log = opened(name, tmp_path)
    report = log.report()

    text = " ".join(str(report).split())
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    report.save_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert told["healthy"] == report.healthy
    assert [each["cause"] for each in told["findings"]] == [finding.cause for finding in report.findings]
    for finding in report.findings:
        assert f"{finding.severity.upper()} {finding.cause}" in text
        assert finding.cause in page
    assert standing_of(log.recorded).health == next(
        (each.severity for each in report.findings if each.severity != "info"), "healthy"
    )


@pytest.mark.parametrize("name", WITH_TERMS)
def test_the_terms_of_a_loss_are_listed_with_their_shares(name: str, tmp_path: Path) -> None:
    report = opened(name, tmp_path).report()

    text = " ".join(str(report).split())

    assert ("Terms of the loss: " in text) == (report.step >= 0), "they have no value if no step was completed"
    for term in report.terms:
        value = "not finite" if term.value is None else f"{term.value:.3g}".replace("-", "\N{MINUS SIGN}")
        assert f"{term.name} {value}" in text
    for variable in {each.variable for term in report.terms for each in term.variables}:
        shares = [each.share for term in report.terms for each in term.variables if each.variable == variable]
        known = [share for share in shares if share is not None]
        assert not known or math.isclose(sum(known), 1, rel_tol=1e-4)
