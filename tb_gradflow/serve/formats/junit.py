"""Reports as JUnit XML: a suite for each run, a test for each variable, with the same names in every build.

The format is that of Jenkins' xUnit plugin (junit-10.xsd), which other tools accept too. The output is pure ASCII, so
it does not depend on the encoding of standard output.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

from tb_gradflow.record.report import Finding, Severity, Status
from tb_gradflow.serve.formats.batch import Batch, RunReport, printable
from tb_gradflow.serve.terminal.report_text import finding_lines, gradient_words
from tb_gradflow.serve.terminal.text import Look

# These are not expected to get a gradient.
_SKIPPED: tuple[Status, ...] = ("frozen", "integer", "not_measured")


def render(batch: Batch) -> str:
    """The document. A run that cannot be read is a suite with an error."""
    suites = [_suite(run, batch.failing) for run in batch.runs]
    suites += [_unreadable(name, problem) for name, problem in batch.unreadable.items()]
    root = ET.Element("testsuites", {"name": "tb-gradflow"})
    for total in ("tests", "failures", "errors"):
        root.set(total, str(sum(int(suite.get(total, "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii")


def _suite(run: RunReport, failing: frozenset[Severity]) -> ET.Element:
    suite = _element("testsuite", name=run.name)
    if run.recorded is not None:
        suite.set("timestamp", time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(run.recorded)))
    properties = ET.SubElement(suite, "properties")
    properties.append(_element("property", name="step", value=str(run.report.step)))
    properties.append(_element("property", name="summary", value=run.report.summary))
    suite.extend(_tests(run, failing))
    for counted, tag in (("tests", "testcase"), ("failures", ".//failure"), ("skipped", ".//skipped")):
        suite.set(counted, str(len(suite.findall(tag))))
    suite.set("errors", "0")
    return suite


def _tests(run: RunReport, failing: frozenset[Severity]) -> Iterator[ET.Element]:
    told: dict[str, list[Finding]] = {name: [] for name in run.report.variables}
    others: list[Finding] = []
    for finding in run.report.findings:
        of = [name for name in finding.variables if name in told]
        for name in of:
            told[name].append(finding)
        if not of:
            others.append(finding)
    for name, variable in run.report.variables.items():
        test = _test(run, name, told[name], failing)
        if variable.status in _SKIPPED and test.find("failure") is None:
            test.insert(0, _element("skipped", message=variable.status))
        elif not told[name]:
            ET.SubElement(test, "system-out").text = f"{variable.status}, {gradient_words(variable.gradient)}"
        yield test
    for finding in others:
        name = finding.cause if finding.op is None else f"{finding.cause} ({finding.op.name})"
        yield _test(run, name, [finding], failing)


def _test(run: RunReport, name: str, findings: Sequence[Finding], failing: frozenset[Severity]) -> ET.Element:
    """The test fails with the first finding that is severe enough; the other findings are in its output."""
    test = _element("testcase", name=name, classname=run.name, time="0")
    fails = next((finding for finding in findings if finding.severity in failing), None)
    if fails is not None:
        failure = _element("failure", type=fails.cause, message=fails.message)
        failure.text = _text(fails)
        test.append(failure)
    rest = [_text(finding) for finding in findings if finding is not fails]
    if rest:
        ET.SubElement(test, "system-out").text = "\n\n".join(rest)
    return test


def _unreadable(name: str, problem: str) -> ET.Element:
    suite = _element("testsuite", name=name, tests="1", failures="0", errors="1", skipped="0")
    test = _element("testcase", name="the log can be read", classname=name, time="0")
    test.append(_element("error", type="LogError", message=problem))
    suite.append(test)
    return suite


def _text(finding: Finding) -> str:
    return printable("\n".join(finding_lines(finding, Look())))


def _element(tag: str, **attributes: str) -> ET.Element:
    values: Mapping[str, str] = {key: printable(value) for key, value in attributes.items()}
    return ET.Element(tag, dict(values))
