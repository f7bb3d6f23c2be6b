"""Makes docs/causes/<cause>.md: what each cause is, an example program, what the report says, and the fix.

    python -m tests.docs.cause_pages             # runs the programs, and writes all pages
    python -m tests.docs.cause_pages dead_relu   # only these
    python -m tests.docs.cause_pages --pictures  # the same, and takes the pictures of the viewer, with Chromium

Meaning and fix are those of the causes, the programs those of tests/cases.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_gradflow.analyse.causes.catalogue import CATALOGUE
from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.demo.gallery import DEMOS
from tests.cases.judge import HERE as CASES
from tests.cases.judge import explained
from tests.docs.pictures import identity_of, take

REPOSITORY = Path(__file__).parents[2]
PAGES = REPOSITORY / "docs" / "causes"
PICTURES = REPOSITORY / "docs" / "pictures" / "causes"

REPORT = "REPORT "
LINK = "../../tests/cases/{}/case.py"
SHOWN = re.compile(r": \[`(\w+)`\]")

WITHOUT_PROGRAM = {
    "expected": "There is no example program, because this is reported only for variables that you list: "
    '`GradFlowCallback("logs/run1", expected=["teacher/*"])`.',
    "not_measured": "There is no example program, because it takes a training that stops within its first step: "
    "interrupted, out of memory, or with an error.",
    "index_out_of_range": "There is no example program, because its step raises an error: for example "
    "a `fit` of a model with ten outputs, with `sparse_categorical_crossentropy` and labels from 1 to 10.",
    "gradient_not_applied": "There is no example program, because it takes a training of several steps: for example "
    "one of DDPG in which `actor_optimizer.apply_gradients(...)` was forgotten.",
    "outlying_rows": "There is no example program, because gradients of rows are measured only on request: "
    "`tb_gradflow.explain(model, x, y, examples=True)`, for example of a batch in which one label has a wrong unit.",
    "linear_layers": "There is no example program, because it takes a training of some steps whose loss does not fall.",
    "loss_spike": "There is no example program, because it takes a training of some hundred steps: for example one in "
    "which a row has a label in another unit.",
    "gradient_clipped": "There is no example program, because it takes a training of some steps: for example one with "
    "`keras.optimizers.SGD(0.1, clipnorm=1e-6)`.",
    "uneven_updates": "There is no example program, because it takes a training of some steps: for example one with "
    "`keras.optimizers.AdamW(1e-3, weight_decay=400.0)`.",
    "steps_skipped": "There is no example program, because it takes a training of some steps: for example one with "
    "`keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**120)`.",
    "loss_not_scaled": "There is no example program, because it takes a training with an optimizer: for example a "
    '`train_step` from a tutorial, after `keras.mixed_precision.set_global_policy("mixed_float16")`.',
}
"""Why a page has none."""

CALLS = {
    "keras": 'made["model"], made["x"], made["y"]',
    "function": 'made["loss_fn"], args=made["args"], variables=made["variables"]',
}
"""What `explain` is given of what a program builds, by the kind of the program."""

BATCH = re.compile(r'"fit_kwargs": {[^}]*"batch_size": (\d+)')


@dataclass(frozen=True, slots=True)
class Case:
    """A program of tests/cases."""

    name: str
    truth: dict[str, Any]

    @property
    def program(self) -> str:
        return program_of(CASES / self.name / "case.py")

    @property
    def runnable(self) -> str:
        """The program, with an end that explains what it builds: it runs as it stands."""
        size = BATCH.search(self.program)
        given = CALLS[str(self.truth["kind"])] + (f", batch_size={size[1]}" if size else "")
        end = ["import tb_gradflow", "", "made = build()", f"print(tb_gradflow.explain({given}, try_fixes=True))"]
        return "\n".join(
            [self.program, "", "", 'if __name__ == "__main__":', *(f"    {line}".rstrip() for line in end)]
        )

    @property
    def repair(self) -> str:
        """What is different in the repaired program; empty if there is none."""
        fixed = CASES / self.name / "fixed.py"
        if not fixed.is_file():
            return ""
        lines = difflib.unified_diff(self.program.splitlines(), program_of(fixed).splitlines(), n=2, lineterm="")
        hunks = "\n".join(line for line in lines if not line.startswith(("---", "+++"))).split("@@ -")[1:]
        return "\n⋮\n".join(hunk.partition("\n")[2].rstrip("\n") for hunk in hunks)


def program_of(path: Path) -> str:
    """Line by line the program, so that a report's line numbers are those of the page."""
    return path.read_text(encoding="utf-8").replace("# mypy: ignore-errors\n", "# case.py\n", 1).strip()


def cases_of() -> dict[str, list[Case]]:
    """Cause -> its programs: the shortest first, for it shows the cause with the least around it."""
    found: dict[str, list[Case]] = {}
    for path in sorted(CASES.glob("*/truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        if truth.get("verdict") != "healthy":
            found.setdefault(truth["cause"], []).append(Case(path.parent.name, truth))
    return {
        cause: sorted(cases, key=lambda case: (not case.repair, len(case.program))) for cause, cases in found.items()
    }


def shown_first(cause: str, cases: Sequence[Case]) -> Sequence[Case]:
    """The program that the page shows today first, as long as there is one: a new program changes no page."""
    path = PAGES / f"{cause}.md"
    shown = SHOWN.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    return sorted(cases, key=lambda case: shown is None or case.name != shown[1])


def page(cause: Cause, cases: Sequence[Case], report: str) -> str:
    """The text of one page; `report` is what the first of the cases is told."""
    return "\n".join(_lines(cause, cases, report)) + "\n"


def _lines(cause: Cause, cases: Sequence[Case], report: str) -> Iterator[str]:
    yield f"# `{cause.name}`"
    yield from ("", f"**What it is** ({cause.severity}): {cause.meaning}.", "", f"**What to do**: {cause.fix}.")
    if cases:
        first = cases[0]
        yield from (
            "",
            "## Example program",
            "",
            f"{first.truth['title']}: [`{first.name}`]({LINK.format(first.name)}), adapted from",
        )
        yield f"<{first.truth['source']}>."
        yield from ("", "```python", first.runnable, "```", "")
        yield "`python case.py` prints:"
        yield from ("", "```text", report, "```")
        yield from ("", f"![{seen(cause.name, report)}](../pictures/causes/{cause.name}.png)")
        if first.repair:
            yield from (
                "",
                "## The fix",
                "",
                f"In short: {first.truth['fix_hint']}.",
                "",
                "```diff",
                first.repair,
                "```",
            )
    elif cause.name in WITHOUT_PROGRAM:
        yield from ("", WITHOUT_PROGRAM[cause.name])
    more = [f"[`{demo.name}`](../../tb_gradflow/demo/{demo.name}.py)" for demo in DEMOS if demo.cause == cause.name]
    more += [f"[{case.truth['title']}]({LINK.format(case.name)})" for case in cases[1:]]
    if more:
        yield from ("", "## More examples", "", *(f"- {each}" for each in more))
    yield from ("", "[All causes](../causes.md)")


def seen(cause: str, report: str) -> str:
    """The picture in words: what is selected in it, and which path is highlighted."""
    finding = re.split(rf"^[A-Z]+  {cause}$", report, maxsplit=1, flags=re.MULTILINE)[-1].partition("\n\n")[0]
    labelled = dict(re.findall(r"^  (op|for) +(.+)$", finding, flags=re.MULTILINE))
    variable = labelled.get("for", "").partition(",")[0].partition(" and ")[0]
    op = labelled.get("op", "").partition(" ")[0]
    chosen = f"the op {op} selected" if op else f"{variable} selected" if variable else "the model"
    way = f" and the path of {variable} highlighted" if op and variable else ""
    return f"The finding {cause} in the viewer, next to the graph with {chosen}{way}"


def reports(names: Sequence[str], pages: str = "") -> dict[str, str]:
    """What `explain` says about each case, as text; in the directory `pages`, if there is one, as `<name>.html`."""
    command = [sys.executable, "-m", "tests.docs.cause_pages", "--explain", pages, *names]
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False)
    lines = [line[len(REPORT) :].split(" ", 1) for line in done.stdout.splitlines() if line.startswith(REPORT)]
    found = {name: json.loads(text) for name, text in lines}
    missing = set(names) - set(found)
    assert not missing, f"no report of {missing}: {done.stderr[-2000:]}"
    return found


def explain(name: str, pages: str) -> str:
    """Run where the program lies, so that the report names it as its reader would."""
    os.chdir(CASES / name)
    report = explained(name, try_fixes=True)
    if pages:
        report.save_html(Path(pages) / f"{name}.html")
    return str(report)


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--explain"]:
        for name in arguments[2:]:
            sys.stdout.write(f"\n{REPORT}{name} {json.dumps(explain(name, arguments[1]))}\n")
            sys.stdout.flush()
        return
    cases = {cause: shown_first(cause, of) for cause, of in cases_of().items()}
    named = [name for name in arguments if name != "--pictures"]
    wanted = [name for name in CATALOGUE if name in named or not named]
    shown = {name: cases[name][0] for name in wanted if name in cases}
    with tempfile.TemporaryDirectory() as directory:
        told = reports([case.name for case in shown.values()], directory if "--pictures" in arguments else "")
        if "--pictures" in arguments:
            take(
                {name: Path(directory) / f"{case.name}.html" for name, case in shown.items()},
                {name: identity_of(case.program, told[case.name]) for name, case in shown.items()},
                PICTURES,
            )
    PAGES.mkdir(exist_ok=True)
    for name in wanted:
        of = cases.get(name, [])
        text = page(CATALOGUE[name], of, told[of[0].name] if of else "")
        (PAGES / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
