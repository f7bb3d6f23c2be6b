"""Reports as SARIF 2.1.0 (OASIS): the format of code scanning and editors. A rule is a cause, a result is a finding.

GitHub rejects a whole file if one result has no file, so a finding without a line of code is located at the directory
of its run.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import quote

from tb_gradflow.record.report import Edit, Finding, Severity
from tb_gradflow.serve.formats.batch import Batch, Occurrence, occurrences, printable
from tb_gradflow.serve.runs.finite import finite
from tb_gradflow.serve.terminal.causes import Explanation, explanation_of
from tb_gradflow.version import VERSION

Json = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_ROOT = "%SRCROOT%"
"""The base of relative paths; GitHub takes it for the root of the repository."""

_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_PROBLEMS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "recommendation"}


def render(batch: Batch) -> str:
    """The document. Findings of several runs form one SARIF run, because GitHub rejects several runs of one tool."""
    found = list(occurrences(batch))
    rules: dict[str, Json] = {}
    for each in found:
        rules.setdefault(each.finding.cause, _rule(each.finding))
    places = list(rules)
    run = {
        "tool": {"driver": {"name": "tb-gradflow", "version": VERSION, "rules": list(rules.values())}},
        "automationDetails": {"id": "tb-gradflow/"},
        "originalUriBaseIds": {
            _ROOT: {"description": _message("The directory from which the training was started.")},
        },
        "invocations": [
            {
                "executionSuccessful": not batch.unreadable,
                "toolExecutionNotifications": [
                    {"level": "error", "message": _message(f"run {name}: {problem}")}
                    for name, problem in batch.unreadable.items()
                ],
            }
        ],
        "results": [_result(each, places.index(each.finding.cause)) for each in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [finite(run)]}, indent=2, allow_nan=False)


def _rule(finding: Finding) -> Json:
    explained = explanation_of(finding.cause) or Explanation(finding.severity, finding.cause, "", "")
    described = _message(explained.meaning)
    return {
        "id": finding.cause,
        "name": "".join(word.capitalize() for word in finding.cause.split("_")),
        "shortDescription": described,
        "fullDescription": described,
        "help": {
            "text": explained.remedy or explained.meaning,
            **({"markdown": explained.markdown} if explained.markdown else {}),
        },
        "defaultConfiguration": {"level": _LEVELS[explained.severity]},
        "properties": {"tags": ["gradient", "tensorflow"], "problem.severity": _PROBLEMS[explained.severity]},
    }


def _result(each: Occurrence, rule: int) -> Json:
    finding = each.finding
    fix = [f"Fix: {finding.fix}"] if finding.fix else []
    said = "\n".join([finding.message, *(known.text for known in finding.evidence), *fix])
    return {
        "ruleId": finding.cause,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": _message(said),
        "locations": [_location(each)],
        "partialFingerprints": {"gradflow/v1": _fingerprint(finding)},
        "occurrenceCount": len(each.runs),
        **({"fixes": [_fix(finding.edit, finding.fix)]} if finding.edit is not None else {}),
        "properties": {
            "runs": [{"name": printable(run.name), "step": run.report.step} for run in each.runs],
            "variables": [printable(name) for name in finding.variables],
        },
    }


def _location(each: Occurrence) -> Json:
    finding = each.finding
    location: Json = {}
    if finding.source is None:
        location["physicalLocation"] = {"artifactLocation": _artifact(each.runs[0].place)}
    else:
        snippet = {"snippet": {"text": printable(finding.source.code)}} if finding.source.code else {}
        location["physicalLocation"] = {
            "artifactLocation": _artifact(finding.source.file),
            "region": {"startLine": max(1, finding.source.line), **snippet},
        }
    if finding.op is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": printable(finding.op.name), "kind": "op"}]
    return location


def _artifact(path: str) -> Json:
    """A path as a relative reference: nothing in it may look like a scheme, a query or a fragment."""
    return {"uri": quote(path.replace("\\", "/").encode("utf-8", "replace"), safe="/"), "uriBaseId": _ROOT}


def _fix(edit: Edit, said: str) -> Json:
    # Without columns a region extends from the first character of a line to the last one before its line break
    # (3.30.2). Code is not cleaned: it is written unchanged.
    region: Json = {"startLine": edit.line, "endLine": edit.end_line}
    return {
        "description": _message(said.splitlines()[0] if said else "Apply the edit."),
        "artifactChanges": [
            {
                "artifactLocation": _artifact(edit.file),
                "replacements": [{"deletedRegion": region, "insertedContent": {"text": edit.after}}],
            }
        ],
    }


def _fingerprint(finding: Finding) -> str:
    """Stays the same when lines above move: it depends on what is wrong, in which code, for which variables."""
    source = ("", "") if finding.source is None else (finding.source.file, finding.source.code.strip())
    op = "" if finding.op is None else finding.op.type
    text = "\0".join((finding.cause, *source, op, *sorted(finding.variables)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _message(text: str) -> Json:
    return {"text": printable(text)}
