"""`tb-gradflow report --format …`: what build servers and editors read."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tb_gradflow.cli.main import main
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.serve.formats import github, junit, sarif
from tb_gradflow.serve.formats.batch import SEVERITIES_THAT_FAIL, Batch, RunReport
from tb_gradflow.serve.terminal import causes
from tests.serve.formats.reports import EDIT, HOSTILE, batch, finding, hostile, report
from tests.serve.formats.xsd import complaints
from tests.store.samples import open_writer, session, write_log

SCHEMAS = Path(__file__).parent / "schemas"

# What may stand in a report that a program reads: nothing that steers a terminal or turns the direction of a line.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


@functools.cache
def sarif_schema() -> jsonschema.Draft4Validator:
    schema = json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator.check_schema(schema)
    return jsonschema.Draft4Validator(schema)


def valid_sarif(of: Batch) -> dict[str, Any]:
    document = json.loads(sarif.render(of))
    sarif_schema().validate(document)
    [run] = document["runs"]
    return dict(run)


def valid_junit(of: Batch) -> ET.Element:
    root = ET.fromstring(junit.render(of))
    assert list(complaints(root, SCHEMAS / "junit-10.xsd")) == []
    return root


def commands(of: Batch) -> list[tuple[str, dict[str, str], str]]:
    """Name, properties and message of each, as the runner of GitHub Actions takes them apart."""
    found = []
    for line in github.render(of).splitlines()[:-1]:
        head, _, message = line.removeprefix("::").partition("::")
        name, _, properties = head.partition(" ")
        pairs = (each.split("=", 1) for each in properties.split(","))
        found.append((name, {key: unescaped(value) for key, value in pairs}, unescaped(message)))
    return found


def unescaped(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_github_gets_a_command_for_each_finding_on_its_line() -> None:
    info = replace(finding("dead_relu", "kernel", source=False), severity="info")

    first, second = commands(batch(finding("nondiff_comparison", "threshold"), info))

    assert first == (
        "error",
        {"file": "src/my model.py", "line": "17", "title": "tb-gradflow: nondiff_comparison"},
        "`less` only compares `threshold`.\nFix: Write a soft mask:\n    mask = soft(threshold)",
    )
    assert second[:2] == ("notice", {"title": "tb-gradflow: dead_relu"})


def test_what_ends_a_property_or_a_command_is_escaped() -> None:
    text = github.render(batch(replace(finding(), message="50% of a,b::c\r\nnext"), name="x"))

    assert text.splitlines()[0] == (
        "::error file=src/my model.py,line=17,title=tb-gradflow%3A nondiff_comparison::"
        "50%25 of a,b::c\N{REPLACEMENT CHARACTER}%0Anext%0AFix: Write a soft mask:%0A    mask = soft(threshold)"
    )


def test_one_bug_in_many_runs_is_told_once() -> None:
    runs = [RunReport(f"run{n}", f"run{n}", report(finding("nondiff_comparison", "threshold"))) for n in range(5)]

    [(_, _, message)] = commands(Batch(runs))
    [result] = valid_sarif(Batch(runs))["results"]

    assert message.endswith("\nIn run0, run1, run2 and 2 other runs.")
    assert result["occurrenceCount"] == 5
    assert [run["name"] for run in result["properties"]["runs"]] == [f"run{n}" for n in range(5)]


def test_sarif_is_valid_and_says_rule_place_and_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "PAGES", tmp_path)
    (tmp_path / "nondiff_comparison.md").write_text(
        "# `nondiff_comparison`\n\n**What it is** (warning; error for an empty list): it compares [a](b.md).\n\n"
        "**What to do**: use a soft step.\n\n```python\nx = [a](b)\n```\n\n[All causes](../causes.md)\n"
    )

    run = valid_sarif(batch(replace(finding("nondiff_comparison", "threshold"), edit=EDIT)))

    [rule] = run["tool"]["driver"]["rules"]
    [result] = run["results"]
    assert (rule["id"], rule["name"]) == ("nondiff_comparison", "NondiffComparison")
    assert rule["shortDescription"]["text"] == "It compares a."
    assert rule["help"]["text"] == "Use a soft step."
    assert "x = [a](b)" in rule["help"]["markdown"]
    assert "All causes" not in rule["help"]["markdown"]
    assert rule["defaultConfiguration"]["level"] == "warning"
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("nondiff_comparison", 0, "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/my%20model.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["startLine"] == 17
    [change] = result["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "model.py"
    assert change["replacements"] == [
        {"deletedRegion": {"startLine": 17, "endLine": 18}, "insertedContent": {"text": EDIT.after}}
    ]


def test_every_page_of_a_cause_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = Path(__file__).parents[3] / "docs" / "causes"
    monkeypatch.setattr(causes, "PAGES", pages)

    explained = {path.stem: causes.explanation_of(path.stem) for path in pages.glob("*.md")}

    assert len(explained) > 50
    assert [cause for cause, each in explained.items() if each is None or not each.meaning or not each.remedy] == []


def test_an_edit_in_sarif_applied_as_the_standard_says_gives_its_lines() -> None:
    """A region without columns ends before the break of its last line."""
    lines = ["first", *["…"] * 15, *EDIT.before.split("\n"), "last"]
    [result] = valid_sarif(batch(replace(finding(), edit=EDIT)))["results"]
    [replacement] = result["fixes"][0]["artifactChanges"][0]["replacements"]
    region = replacement["deletedRegion"]

    before, after = lines[: region["startLine"] - 1], lines[region["endLine"] :]
    text = "\n".join([*before, replacement["insertedContent"]["text"], *after])

    assert text.split("\n") == ["first", *["…"] * 15, *EDIT.after.split("\n"), "last"]


def test_a_finding_without_a_line_is_placed_at_its_run() -> None:
    """GitHub refuses a whole file in which one result has no file."""
    [result] = valid_sarif(batch(finding(source=False)))["results"]

    assert result["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "logs/run1", "uriBaseId": "%SRCROOT%"}},
            "logicalLocations": [{"fullyQualifiedName": "step_filter/Less", "kind": "op"}],
        }
    ]


def test_a_fingerprint_stays_when_lines_move_and_changes_with_the_code() -> None:
    def fingerprint(line: int, code: str) -> str:
        first = finding("nondiff_comparison", "threshold")
        assert first.source is not None
        moved = replace(first, source=replace(first.source, line=line, code=code))
        return str(valid_sarif(batch(moved))["results"][0]["partialFingerprints"]["gradflow/v1"])

    assert fingerprint(17, "a = b") == fingerprint(40, "    a = b")
    assert fingerprint(17, "a = b") != fingerprint(17, "a = c")


def test_junit_has_a_suite_for_each_run_and_a_test_for_each_variable() -> None:
    frozen = report(names=("kernel",))
    root = valid_junit(
        Batch(
            (
                RunReport("bad", "bad", report(finding("nondiff_comparison", "threshold"))),
                RunReport("good", "good", frozen, 1_700_000_000.0),
            )
        )
    )

    bad, good = root
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("bad", "2", "1"),
        ("good", "1", "0"),
    ]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "0")
    assert [test.get("name") for test in bad.findall("testcase")] == ["kernel", "threshold"]
    [failure] = bad.findall(".//failure")
    assert failure.get("message") == "`less` only compares `threshold`."
    assert "at   src/my model.py:17" in (failure.text or "")
    assert good.get("timestamp") == "2023-11-14T22:13:20"


def test_a_finding_about_no_variable_is_a_test_of_its_own() -> None:
    [suite] = valid_junit(batch(finding("labels_broadcast")))

    assert [test.get("name") for test in suite.iter("testcase") if test.find("failure") is not None] == [
        "labels_broadcast (step_filter/Less)"
    ]


def test_junit_fails_where_fail_on_would() -> None:
    warning = batch(replace(finding("dead_relu", "kernel"), severity="warning"))

    [counted] = valid_junit(warning)
    [passed] = valid_junit(replace(warning, failing=SEVERITIES_THAT_FAIL["error"]))

    assert counted.get("failures") == "1"
    assert passed.get("failures") == "0"
    assert "WARNING  dead_relu" in (passed.findtext("testcase/system-out") or "")


def test_names_made_to_break_the_formats_do_not() -> None:
    said = commands(hostile())
    run = valid_sarif(hostile())
    root = valid_junit(hostile())

    # One line for the run that cannot be read, one for each of two findings, one that counts.
    assert [name for name, _, _ in said] == ["error", "error", "error"]
    assert len(github.render(hostile()).splitlines()) == 4
    assert said[1][1]["file"].startswith("a]]><b c=\"d'&amp;%0A\N{REPLACEMENT CHARACTER}")
    assert len(run["results"]) == 2
    assert [suite.get("errors") for suite in root] == ["0", "1"]
    texts = [*root.itertext(), *(value for element in root.iter() for value in element.attrib.values())]
    cleaned = json.dumps({**run, "results": [{**each, "fixes": []} for each in run["results"]]}, ensure_ascii=False)
    for text in (github.render(hostile()).replace("\n", ""), cleaned, *texts):
        assert STEERING.search(text) is None
    for location in run["results"][0]["locations"]:
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert urlsplit(uri)[:2] == ("", "")
        assert urlsplit(uri).path == uri
        assert unquote(uri).startswith("a]]><b")


def test_code_in_an_edit_is_written_as_it_stands() -> None:
    edit = replace(EDIT, after=f"x = {HOSTILE!r}")

    [result] = valid_sarif(batch(replace(finding(), edit=edit)))["results"]

    [replacement] = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"]["text"] == edit.after


@pytest.mark.parametrize("name", ["github", "sarif", "junit"])
def test_the_command_prints_the_format_and_keeps_its_exit_status(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "logs" / "a")
    monkeypatch.chdir(tmp_path)

    assert main(["report", "logs", "--format", name]) == 0
    out = capsys.readouterr().out
    assert main(["report", "logs", "--format", name, "--fail-on", "error"]) == 1
    again = capsys.readouterr().out
    open_writer(tmp_path / "logs" / "newer", session(format=FORMAT + 1)).close()
    assert main(["report", "logs", "--format", name]) == 2
    broken = capsys.readouterr().out

    assert out == again
    assert "only compares it" in out
    assert "log has format" in broken
    assert str(tmp_path) not in out


def test_json_is_short_for_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "a")

    main(["report", str(tmp_path), "--json"])
    short = capsys.readouterr().out
    main(["report", str(tmp_path), "--format", "json"])

    assert short == capsys.readouterr().out
    assert list(json.loads(short)["runs"]) == ["a"]


def test_text_is_what_is_printed_without_a_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "a")

    main(["report", str(tmp_path)])
    plain = capsys.readouterr().out
    main(["report", str(tmp_path), "--format", "text"])

    assert plain == capsys.readouterr().out
