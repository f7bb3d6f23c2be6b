"""Checks the answers of `tb_gradflow.explain` on the cases of this directory.

    python -m tests.cases.judge [NAME …]

Prints a line for each case whose answer differs from its `truth.json`, and the share of right answers:

report  cases that have a report: neither building nor explaining the case raised or ended the process
status  variables with the right status, of all that have an expected one
op      variables without a good gradient whose first finding names an op of the expected type
cause   bugs and benign cases whose first finding on an affected variable has the right cause, or one of
        `accept_causes`; with `any_cause`, every cause is accepted
alarms  false alarms: healthy cases with an error, a warning or a status that is neither connected nor frozen; benign
        cases with an error; other cases with an error or a warning of another cause about unaffected variables
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent
REPORT, FAILURE, LOSSES = "REPORT ", "FAILURE ", "LOSSES "
Kind = Literal["report", "status", "op", "cause", "alarm"]
COUNTED: tuple[Kind, ...] = ("report", "status", "op", "cause")
QUIET = {"connected", "frozen"}

# Cases that share a process, since loading TensorFlow takes longer than a case.
TOGETHER = 30

# Seconds for the cases of one process: many times what they take on a busy machine.
LIMIT = 900


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of `tb_gradflow.explain` on one case.

    Attributes:
        report: As `Report.to_dict` writes it; `None` if there is none.
        failure: Why there is no report: the traceback, or how the process ended.
        losses: The loss before each of a few steps of training; empty unless the case was to be trained.
    """

    report: dict[str, Any] | None
    failure: str = ""
    losses: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer, and a sentence that says what is wrong with it."""

    kind: Kind
    text: str


@dataclass(slots=True)
class Verdict:
    """The judgement of one report.

    Attributes:
        counts: `[right, asked]` for each kind that is counted.
        mistakes: Each wrong answer; none if the case is answered as its truth says.
    """

    counts: dict[Kind, list[int]] = field(default_factory=lambda: {kind: [0, 0] for kind in COUNTED})
    mistakes: list[Mistake] = field(default_factory=list)

    def count(self, kind: Kind, right: bool, mistake: str) -> None:
        self.counts[kind][0] += right
        self.counts[kind][1] += 1
        if not right:
            self.mistakes.append(Mistake(kind, mistake))


def case_names() -> list[str]:
    return sorted(path.parent.name for path in HERE.glob("*/truth.json"))


def judge(truth: dict[str, Any], answer: Answer) -> Verdict:
    """Compares an answer with the truth. If there is no report, everything that the truth expects is wrong."""
    verdict = Verdict()
    verdict.count("report", answer.report is not None, f"no report: {answer.failure}")
    report = answer.report or {"variables": [], "findings": []}
    got = {each["name"]: each["status"] for each in report["variables"]}
    findings = report["findings"]
    affected = []
    for name, entry in truth["variables"].items():
        right = _right_statuses(truth, name)
        verdict.count("status", got.get(name) in right, f"{name} is {got.get(name)}, not {'/'.join(sorted(right))}")
        if right & QUIET and truth["verdict"] != "benign" and not entry.get("moves"):
            continue
        affected.append(name)
        if guilty := _guilty(truth, entry):
            first = next((each for each in findings if name in each["variables"]), None)
            op = (first or {}).get("op") or {}
            verdict.count("op", op.get("type") in guilty, f"{name}: {op.get('type')}, not {'/'.join(sorted(guilty))}")
    for name in got.keys() - truth["variables"].keys() if "all_others" in truth else ():
        right = _right_statuses(truth, name) | {"frozen"}
        verdict.count("status", got[name] in right, f"{name} is {got[name]}, not {'/'.join(sorted(right))}")
    loud = [each["cause"] for each in findings if each["severity"] in ("error", "warning")]
    if truth["verdict"] == "healthy":
        odd = [name for name, status in got.items() if status not in (_right_statuses(truth, name) | QUIET)]
        if odd or loud:
            verdict.mistakes.append(Mistake("alarm", f"false alarm: {odd[:3]} {loud[:3]}"))
        return verdict
    if truth["verdict"] == "benign" and any(each["severity"] == "error" for each in findings):
        verdict.mistakes.append(Mistake("alarm", "an error where nothing is to repair"))
    about = [each for each in findings if not affected or set(each["variables"]) & set(affected)] or findings
    if truth.get("any_cause"):
        verdict.count("cause", bool(about), "no cause at all")
        return verdict
    cause = about[0]["cause"] if about else None
    right_causes = {truth["cause"], *truth.get("accept_causes", ())}
    verdict.count("cause", cause in right_causes, f"cause {cause}, not {'/'.join(sorted(right_causes))}")
    for each in findings:
        if each["severity"] in ("error", "warning") and each["cause"] not in right_causes and each not in about:
            verdict.mistakes.append(Mistake("alarm", f"false alarm: {each['cause']} of {each['variables'][:3]}"))
    return verdict


def answers(names: Sequence[str]) -> Iterator[tuple[str, Answer]]:
    """The answer to each case, from processes that several cases share."""
    batches = [names[start : start + TOGETHER] for start in range(0, len(names), TOGETHER)]
    with ThreadPoolExecutor(2) as pool:
        for batch in pool.map(answers_of_a_batch, batches):
            yield from batch.items()


def in_a_process(names: Sequence[str], directory: Path = HERE, *, train: bool = False) -> dict[str, Answer]:
    """The answers of one process: those that it gave, a failure for the case that ended it, and none for later ones."""
    command = [sys.executable, "-m", "tests.cases.judge", "--train" if train else "--explain", str(directory), *names]
    try:
        done = subprocess.run(
            command, cwd=HERE.parents[1], capture_output=True, text=True, check=False, timeout=LIMIT, errors="replace"
        )
        printed, ended = done.stdout, f"the process ended with {done.returncode}\n{done.stderr[-2000:]}"
    except subprocess.TimeoutExpired as expired:
        printed = (expired.stdout or b"").decode(errors="replace")
        ended = f"no answer within {LIMIT} seconds"
    found = {}
    for line in printed.splitlines():
        if line.startswith(REPORT):
            name, text = line.removeprefix(REPORT).split(" ", 1)
            found[name] = Answer(json.loads(text))
        elif line.startswith(LOSSES):
            name, text = line.removeprefix(LOSSES).split(" ", 1)
            found[name] = replace(found[name], losses=tuple(json.loads(text)))
        elif line.startswith(FAILURE):
            name, text = line.removeprefix(FAILURE).split(" ", 1)
            found[name] = Answer(None, json.loads(text))
    if unanswered := [name for name in names if name not in found]:
        found[unanswered[0]] = Answer(None, ended)
    return found


def answers_of_a_batch(
    names: Sequence[str], run: Callable[[Sequence[str]], dict[str, Answer]] = in_a_process
) -> dict[str, Answer]:
    """The answer to each case. One without a report in company is asked again alone: what other cases left behind in
    the process is not its fault."""
    found = run(names)
    if len(names) > 1:
        for name in [name for name, answer in found.items() if answer.report is None]:
            found |= run([name])
    if later := [name for name in names if name not in found]:
        found |= answers_of_a_batch(later, run)
    return {name: found[name] for name in names}


def explained(name: str, directory: Path = HERE, *, file: str = "case.py", try_fixes: bool = False) -> Any:
    """The report of `tb_gradflow.explain` on one case, or on another program beside it, in this process."""
    import tb_gradflow

    case = built(name, directory, file)
    if case["kind"] == "keras":
        batch_size = case.get("fit_kwargs", {}).get("batch_size")
        return tb_gradflow.explain(case["model"], case["x"], case["y"], batch_size=batch_size, try_fixes=try_fixes)
    return tb_gradflow.explain(case["loss_fn"], args=case["args"], variables=case["variables"], try_fixes=try_fixes)


def built(name: str, directory: Path = HERE, file: str = "case.py") -> dict[str, Any]:
    """The model or the loss of one case, made in this process, with its module, which a program keeps while
    it runs.
    """
    import keras

    keras.utils.clear_session(free_memory=False)
    spec = importlib.util.spec_from_file_location(name, directory / name / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    case: dict[str, Any] = module.build()
    return {**case, "module": module}


# Steps of training, and how fast a loss that is a function is trained.
STEPS, RATE = 20, 0.01


def trained(name: str, directory: Path = HERE) -> list[float]:
    """The loss before each of a few steps on the first batch, as the case trains, or else by Adam."""
    import keras
    import tensorflow as tf

    case = built(name, directory)
    if case["kind"] == "keras":
        size = case.get("fit_kwargs", {}).get("batch_size", 32)
        x, y = (
            None if case[key] is None else tf.nest.map_structure(lambda rows: rows[:size], case[key])
            for key in ("x", "y")
        )
        losses = case["model"].fit(x, y, batch_size=size, epochs=STEPS, verbose=0, shuffle=False).history["loss"]
        return [float(loss) for loss in losses]
    variables = [each for each in tf.nest.flatten(case["variables"]) if hasattr(each, "assign")]
    optimizer, losses = keras.optimizers.Adam(RATE), []
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = case["loss_fn"](*case["args"])
        gradients = tape.gradient(loss, variables)
        losses.append(float(loss))
        pairs = [pair for pair in zip(gradients, variables, strict=True) if pair[0] is not None]
        if not pairs:
            break
        optimizer.apply_gradients(pairs)
    return losses


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


def judged(names: Sequence[str]) -> dict[str, Verdict]:
    """The judgement of each case."""
    return {name: judge(truth_of(name), answer) for name, answer in answers(names)}


def truth_of(name: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((HERE / name / "truth.json").read_text(encoding="utf-8"))
    return truth


def share(verdicts: Iterable[Verdict], kind: Kind) -> tuple[int, int]:
    """How many answers of a kind were right, and how many were expected."""
    counts = [verdict.counts[kind] for verdict in verdicts]
    return sum(right for right, _ in counts), sum(asked for _, asked in counts)


def _trained(name: str, directory: Path) -> list[float]:
    """The losses; none if training raises."""
    try:
        return trained(name, directory)
    except Exception:
        traceback.print_exc()
        return []


def print_answers(directory: Path, names: Sequence[str], *, train: bool) -> None:
    """For `in_a_process`: a line for each case, written at once, as a later one may end the process."""
    for name in names:
        try:
            line = f"{REPORT}{name} {json.dumps(explained(name, directory).to_dict())}"
            if train:
                line += f"\n{LOSSES}{name} {json.dumps(_trained(name, directory))}"
        except Exception:
            line = f"{FAILURE}{name} {json.dumps(traceback.format_exc())}"
        sys.stdout.write(f"\n{line}\n")
        sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] in (["--explain"], ["--train"]):
        print_answers(Path(arguments[1]), arguments[2:], train=arguments[0] == "--train")
        return
    names = [name for name in case_names() if not arguments or name.startswith(tuple(arguments))]
    verdicts = judged(names)
    for name, verdict in verdicts.items():
        if verdict.mistakes:
            sys.stdout.write(f"{name}: {'; '.join(mistake.text for mistake in verdict.mistakes)}\n")
    shares = ["{} {}/{}".format(kind, *share(verdicts.values(), kind)) for kind in COUNTED]
    alarms = sum(mistake.kind == "alarm" for verdict in verdicts.values() for mistake in verdict.mistakes)
    sys.stdout.write(f"{len(names)} cases: {', '.join(shares)}, alarms {alarms}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
