"""Names are text: in the terminal, in SARIF, in annotations, in JUnit's XML, and in the page as HTML."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import tb_gradflow
from tb_gradflow.cli.main import main
from tests.hostile.mutations import SEEDS
from tests.hostile.names import LONG, write_hostile, write_renamed

STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    write_hostile(root)
    return root


@pytest.fixture(scope="module", params=["trained", "explained"])
def everywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs with terms, examples, ranges, trials and layers, in which every string is hostile."""
    directory = tmp_path_factory.mktemp("renamed") / "run"
    [of] = [path.parents[1] for path in SEEDS if path.parents[1].name == request.param]
    write_renamed(directory, of)
    return directory


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    status = main(arguments)
    captured = capsys.readouterr()
    assert status == 0, captured.err
    assert not STEERING.search(captured.err)
    return captured.out


@pytest.mark.parametrize("format", ["text", "json", "markdown", "github", "sarif", "junit"])
def test_nothing_in_a_report_steers_a_terminal(logdir: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    out = said(capsys, "report", str(logdir), "--format", format)

    assert "pwned" in out
    assert not STEERING.search(out)


@pytest.mark.parametrize("format", ["text", "json", "markdown", "github", "sarif", "junit"])
def test_no_string_of_any_record_steers_a_terminal_or_a_build_server(
    everywhere: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    out = said(capsys, "report", str(everywhere), "--format", format)

    assert "pwned" in out
    assert not STEERING.search(out)
    assert not any(line.startswith(("::error file=/etc", "##[")) for line in out.splitlines())


def test_no_string_of_any_record_steers_it_in_the_report_of_any_step(everywhere: Path) -> None:
    log = tb_gradflow.open_log(everywhere)
    others = tb_gradflow.compare(log, tb_gradflow.open_log(SEEDS[0].parents[1]))
    reports = [log.report(step) for step in log.steps]

    texts = [str(others), repr(others), repr(log), *map(str, reports), *map(repr, reports)]

    assert all("<img" in text for text in texts[3 : 3 + len(reports)])
    assert [found[0] for text in texts if (found := STEERING.search(text))] == []


def test_a_name_begins_no_line_of_a_build_server_s(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "report", str(logdir), "--format", "github").splitlines()

    commands = [line for line in lines if line.startswith("::") or "##[" in line]
    assert commands
    for line in commands:
        assert re.match(r"::(error|warning|notice) [^:]*title=tb-gradflow", line), line[:200]
    # What a name says of a file is in the message, and the file is escaped.
    assert not any("file=/etc" in line.partition("::")[2].partition("::")[0] for line in commands)


def test_in_text_a_name_with_a_line_break_stays_in_its_line(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "report", str(logdir))

    assert not any(line.startswith("##[") for line in out.splitlines())
    assert sum(line.endswith("no gradient") for line in out.splitlines()) == 1


def test_sarif_has_every_path_below_the_root(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, "report", str(logdir), "--format", "sarif"))

    [result, *_] = document["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uriBaseId"] == "%SRCROOT%"
    assert "<" not in place["uri"]
    assert not place["uri"].startswith("/")


def test_junit_is_xml(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = ET.fromstring(said(capsys, "report", str(logdir), "--format", "junit"))

    assert root.findall(".//testcase")


class Elements(HTMLParser):
    """The elements of a document that is not run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_has_no_element_but_its_own(logdir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    said(capsys, "report", str(logdir), "--html", str(path))
    elements = Elements()
    elements.feed(path.read_text(encoding="utf-8"))

    tags = [tag for tag, _ in elements.found]
    assert tags == ["html", "head", "meta", "meta", "meta", "meta", "title", "body", "pre", "script", "script"]
    policy = next(attrs["content"] for _, attrs in elements.found if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert LONG in path.read_text(encoding="utf-8") or path.stat().st_size > 100_000


def test_the_page_of_every_record_has_no_element_but_its_own_in_a_notebook_too(everywhere: Path) -> None:
    report = tb_gradflow.open_log(everywhere).report()
    saved = everywhere.with_suffix(".html")
    report.save_html(saved)
    page, cell = Elements(), Elements()
    page.feed(saved.read_text(encoding="utf-8"))
    cell.feed(report._repr_html_())

    inside = Elements()
    inside.feed(cell.found[0][1]["srcdoc"] or "")

    assert [tag for tag, _ in cell.found] == ["iframe", "details", "summary", "pre", "script"]
    for elements in (page, inside):
        tags = [each for each, _ in elements.found]
        assert tags == ["html", "head", "meta", "meta", "meta", "meta", "title", "body", "pre", "script", "script"]


def test_a_fix_of_a_file_above_is_not_applied(logdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("/etc/passwd").read_bytes()
    monkeypatch.chdir(tmp_path)

    assert main(["fix", str(logdir), "--apply"]) in (0, 2)
    assert list(tmp_path.iterdir()) == []
    assert Path("/etc/passwd").read_bytes() == before
