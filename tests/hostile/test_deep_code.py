"""Code that nobody reads, such as a sum of a thousand terms that a program wrote: it is left as it is. And numbers that
no float can hold."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tb_gradflow.record.python import MOST_NESTED, expression_of, module_of
from tests.recordings.logs import group, unpack

DEEP = [
    "-" * 500,
    "q + " * 500,
    "q" + "[0]" * 500 + " + ",
    "1 if q else " * 500,
    "not " * 3_000,
    "q" + "()" * 330 + " * ",
]


@pytest.mark.parametrize("deep", DEEP, ids=["signs", "sum", "indices", "conditions", "negations", "calls"])
@pytest.mark.parametrize("name", ["cases/halting_threshold_in_while_condition", "cases/ternary_conv_weights_rounded"])
def test_code_that_is_nested_deeply_has_a_report(name: str, deep: str, tmp_path: Path) -> None:
    log = of(name)
    spoil(log, deep)
    unpack(log, tmp_path)

    report = tb_gradflow.open_log(tmp_path).report()

    assert report.findings
    assert report.findings[0].cause in str(report)


def test_a_line_with_many_names_takes_no_longer_for_many_ops(tmp_path: Path) -> None:
    """Nine hundred ops of this program come from lines with comparisons."""
    log = of("cases/kalman_gate_of_learned_width")
    spoil(log, "q < " * 300)
    unpack(log, tmp_path)
    recorded = tb_gradflow.open_log(tmp_path)

    began = time.process_time()
    recorded.report()

    assert time.process_time() - began < 15


@pytest.mark.parametrize("read", [module_of, expression_of])
@pytest.mark.parametrize(
    "code", ["x = (", "x\0", "-" * 100_000 + "x", "(" * 300 + "x" + ")" * 300, "x" + ".a" * MOST_NESTED]
)
def test_what_is_no_code_or_nested_too_deeply_is_a_syntax_error(read: Any, code: str) -> None:
    with pytest.raises(SyntaxError):
        read(code)


def test_what_people_write_is_nested_less() -> None:
    assert len(module_of(" + ".join(["x"] * 100)).body) == 1
    assert expression_of("f(x)[0]").end_col_offset == 7


def of(name: str) -> Any:
    of, _, short = name.partition("/")
    return json.loads(group(of)[short])


def spoil(log: Any, deep: str) -> None:
    """Puts code into the first call, or the value, of each line that ops come from."""
    for trace in log["traces"]:
        lines = {(source["file"], source["line"]): source for source in trace["sources"]}
        for passage in trace["passages"]:
            text = passage["text"].split("\n")
            for number, line in enumerate(text):
                source = lines.get((passage["file"], passage["line"] + number))
                if source is not None and "def " not in line:
                    text[number] = re.sub(
                        r"(?<=\w)\((?=\w)|(?<== )(?=\w)", lambda found: found[0] + deep, line, count=1
                    )
                    source["code"] = text[number].strip()
            passage["text"] = "\n".join(text)


def test_a_number_beyond_all_floats_has_a_report(tmp_path: Path) -> None:
    text = json.dumps(of("programs/a_choice_between_one_and_zero"))
    assert ", 1.0, 0.0)" in text
    unpack(json.loads(text.replace(", 1.0, 0.0)", f", {10**400}, {10**400})")), tmp_path)

    assert str(tb_gradflow.open_log(tmp_path).report())


@pytest.mark.parametrize("ratio", [1e-310, -5e-324, 1e308])
def test_a_ratio_beyond_all_floats_has_a_report(ratio: float, tmp_path: Path) -> None:
    log = of("programs/a_custom_gradient_of_half_the_size")
    [check] = log["traces"][0]["gradient_checks"]
    check["inputs"][0]["ratio"] = ratio
    unpack(log, tmp_path)

    report = tb_gradflow.open_log(tmp_path).report()

    assert report.findings[0].cause == "custom_gradient_wrong"
