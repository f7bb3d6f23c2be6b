"""How right `tb_gradflow.explain` is on the cases of this directory.

    python -m tests.cases.judge [NAME …]

Prints a line for each case that is not answered as its `truth.json` says, and the shares of right answers:

status  variables whose status is right, over all that a truth names
op      variables without a good gradient whose first finding names an op of the guilty type
cause   bugs and benign cases whose first finding on an affected variable has the right cause, or one of
        `accept_causes`; not asked where `any_cause` says that no word is the one right answer
alarms  healthy cases with an error, a warning or a status that is neither connected nor frozen; benign ones with
        an error
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
REPORT = "REPORT "
KINDS = ("status", "op", "cause")
QUIET = {"connected", "frozen"}

# Cases that share a process: loading TensorFlow takes longer than a case, and one that crashes takes the others along.
TOGETHER = 30


@dataclass(slots=True)
class Verdict:
    """What was right and wrong of one report: `[right, asked]` of each kind, and a line for each mistake."""

    status: list[int] = field(default_factory=lambda: [0, 0])
    op: list[int] = field(default_factory=lambda: [0, 0])
    cause: list[int] = field(default_factory=lambda: [0, 0])
    alarms: int = 0
    mistakes: list[str] = field(default_factory=list)


def case_names() -> list[str]:
    return sorted(path.parent.name for path in HERE.glob("*/truth.json"))


def judge(truth: dict[str, Any], report: dict[str, Any]) -> Verdict:
    verdict = Verdict()
    got = {each["name"]: each["status"] for each in report["variables"]}
    findings = report["findings"]
    affected = []
    for name, entry in truth["variables"].items():
        right = _right_statuses(truth, name)
        _count(verdict, verdict.status, got.get(name) in right, f"{name} is {got.get(name)}, not {'/'.join(right)}")
        if right & QUIET and truth.get("verdict") != "benign" and not entry.get("moves"):
            continue
        affected.append(name)
        if guilty := _guilty(truth, entry):
            first = next((each for each in findings if name in each["variables"]), None)
            op = (first or {}).get("op") or {}
            _count(verdict, verdict.op, op.get("type") in guilty, f"{name}: {op.get('type')}, not {'/'.join(guilty)}")
    loud = [each for each in findings if each["severity"] in ("error", "warning")]
    if truth.get("verdict") == "healthy":
        odd = [name for name, status in got.items() if status not in (_right_statuses(truth, name) | QUIET)]
        if odd or loud:
            verdict.alarms = 1
            verdict.mistakes.append(f"false alarm: {odd[:3]} {[each['cause'] for each in loud][:3]}")
        return verdict
    if truth.get("verdict") == "benign" and any(each["severity"] == "error" for each in findings):
        verdict.alarms = 1
        verdict.mistakes.append("an error where nothing is to repair")
    about = [each for each in findings if not affected or set(each["variables"]) & set(affected)] or findings
    if truth.get("any_cause"):
        return verdict
    cause = about[0]["cause"] if about else None
    right_causes = {truth["cause"], *truth.get("accept_causes", ())}
    _count(verdict, verdict.cause, cause in right_causes, f"cause {cause}, not {truth['cause']}")
    return verdict


def reports(names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Each case's report; null where there is none."""
    batches = [names[start : start + TOGETHER] for start in range(0, len(names), TOGETHER)]
    with ThreadPoolExecutor(2) as pool:
        for batch, found in zip(batches, pool.map(_in_a_process, batches), strict=True):
            for name in batch:
                # What one case leaves behind, or takes along, is not the others' fault.
                yield name, found.get(name) or _in_a_process([name]).get(name)


def _in_a_process(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "tests.cases.judge", "--explain", *names]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False, timeout=900)
    lines = [line[len(REPORT) :].split(" ", 1) for line in done.stdout.splitlines() if line.startswith(REPORT)]
    return {name: json.loads(text) for name, text in lines}


def explained(name: str) -> Any:
    """The report of `tb_gradflow.explain` on one case, in this process."""
    import keras

    import tb_gradflow

    keras.utils.clear_session(free_memory=False)
    spec = importlib.util.spec_from_file_location(name, HERE / name / "case.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    case = module.build()
    if case["kind"] == "keras":
        batch_size = case.get("fit_kwargs", {}).get("batch_size")
        return tb_gradflow.explain(case["model"], case["x"], case["y"], batch_size=batch_size)
    return tb_gradflow.explain(case["loss_fn"], args=case["args"], variables=case["variables"])


def _right_statuses(truth: dict[str, Any], name: str) -> set[str]:
    entry = truth["variables"].get(name)
    if entry is None:
        others = truth.get("all_others")
        return {others} if isinstance(others, str) else set()
    named = {entry[key] for key in ("status", "status_eager", "status_graph") if entry.get(key)}
    return named | set(entry.get("accept", ()))


def _guilty(truth: dict[str, Any], entry: dict[str, Any]) -> set[str]:
    if entry.get("status") in QUIET:
        return set()
    ops = entry.get("blocking_ops", truth.get("blocking_ops", []))
    return set(ops) | set(truth.get("accept_ops", ())) if ops else set()


def _count(verdict: Verdict, counts: list[int], right: bool, mistake: str) -> None:
    counts[0] += right
    counts[1] += 1
    if not right:
        verdict.mistakes.append(mistake)


def judged(names: Sequence[str]) -> dict[str, Verdict]:
    """What was right and wrong of each case's report, and of a report that there is not."""
    verdicts = {}
    for name, report in reports(names):
        truth = json.loads((HERE / name / "truth.json").read_text(encoding="utf-8"))
        verdicts[name] = judge(truth, report or {"variables": [], "findings": []})
        if report is None:
            verdicts[name].mistakes.insert(0, "no report")
    return verdicts


def share(verdicts: Iterable[Verdict], kind: str) -> tuple[int, int]:
    """How many answers of a kind were right, and how many were asked for."""
    counts = [getattr(verdict, kind) for verdict in verdicts]
    return sum(right for right, _ in counts), sum(asked for _, asked in counts)


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--explain"]:
        for name in arguments[1:]:
            sys.stdout.write(f"\n{REPORT}{name} {json.dumps(explained(name).to_dict())}\n")
            sys.stdout.flush()
        return
    names = [name for name in case_names() if not arguments or name.startswith(tuple(arguments))]
    verdicts = judged(names)
    for name, verdict in verdicts.items():
        if verdict.mistakes:
            sys.stdout.write(f"{name}: {'; '.join(verdict.mistakes)}\n")
    shares = ["{} {}/{}".format(kind, *share(verdicts.values(), kind)) for kind in KINDS]
    alarms = sum(verdict.alarms for verdict in verdicts.values())
    sys.stdout.write(f"{len(names)} cases: {', '.join(shares)}, alarms {alarms}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
