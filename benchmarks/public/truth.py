"""From findings to kinds of causes, and from these to the grade of a program.

activation  the last activation does not fit the loss or the targets
loss        the loss does not fit the targets
labels      the targets have the wrong form or range
inputs      the scale of what goes in
rate        the learning rate
steps       too few updates; each of them is in order
capacity    the model cannot represent what it is to learn
hidden      an activation or an initial value of a layer within
layers      another layer: dropout, batch normalisation, a frozen one
terms       one term of the loss decides
metric      the metric says nothing about the training
outside     not in the program, or only in data that the benchmark replaced
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

OF_CAUSES: Mapping[str, frozenset[str]] = {
    cause: frozenset(kinds.split())
    for cause, kinds in {
        "softmax_single_class": "activation",
        "targets_out_of_reach": "activation labels loss",
        "probabilities_as_logits": "loss activation",
        "predictions_dropped": "layers",
        "not_a_distribution": "loss activation",
        "labels_broadcast": "labels loss",
        "vanishing_depth": "hidden",
        "linear_layers": "capacity hidden",
        "outlying_rows": "inputs",
        "zero_input": "inputs",
        "fractions_as_indices": "inputs",
        "nonfinite_input": "inputs",
        "exploding_recurrence": "rate inputs hidden",
        "frozen_by_flag": "layers",
        "term_dominates": "terms",
        "terms_in_conflict": "terms",
        "saturation_clip": "activation loss",
        "log_zero": "loss activation",
    }.items()
}
"""What a cause says. That of a saturated or dead activation depends on where it is."""

_BY_PLACE = ("dead_relu", "dead_units", "saturation_sigmoid", "saturation_softmax", "local_saturation")


def truths_of(text: str) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """By program: the kinds that are right, and those that are a part."""
    found = {}
    for line in text.split("\n"):
        if line:
            right, _, part = line.partition("|")
            name, *kinds = right.split()
            found[name] = frozenset(kinds), frozenset(part.split())
    return found


def kinds_of(report: Mapping[str, Any]) -> list[tuple[str, frozenset[str]]]:
    """What a report says above information: causes and verdict, with the kinds."""
    said = [(each["cause"], _kinds(each, report)) for each in report["findings"] if each["severity"] != "info"]
    verdict = report.get("verdict") or {}
    if verdict.get("kind") in ("rate", "inputs") and not said:
        said.append((f"verdict {verdict['kind']}", frozenset({verdict["kind"]})))
    return said


def _kinds(finding: Mapping[str, Any], report: Mapping[str, Any]) -> frozenset[str]:
    if finding["cause"] not in _BY_PLACE:
        return OF_CAUSES.get(finding["cause"], frozenset())
    last = report["variables"][-1]["name"].rsplit("/", 1)[0].rsplit("/", 1)[-1] if report["variables"] else ""
    op = (finding["op"] or {}).get("name", "")
    return frozenset({"activation"}) if last and last in op else frozenset({"hidden"})


def grade_by_kinds(reports: Iterable[Mapping[str, Any]], right: frozenset[str], part: frozenset[str]) -> str:
    """The first of the trainings of a program decides: the others run with what it left."""
    said = [kinds for report in reports for _, kinds in kinds_of(report)]
    if not said:
        return "silent"
    if any(kinds & right for kinds in said):
        return "right"
    return "partly" if any(kinds & part for kinds in said) else "wrong"
