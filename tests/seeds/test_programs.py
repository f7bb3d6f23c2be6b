"""Each of the seeds' programs is explained compiled and with `run_functions_eagerly`, and no repaired one is told more
than information."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.seeds.programs import GETS, PROGRAMS, Program
from tests.seeds.table import PAGE, page
from tests.serve.processes import environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=[False, True], ids=["compiled", "eagerly"])
def eagerly(request: pytest.FixtureRequest) -> Iterator[bool]:
    tf.config.run_functions_eagerly(request.param)
    yield request.param
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("program", PROGRAMS, ids=[each.name for each in PROGRAMS])
def test_a_seeds_program_is_answered_as_it_stands(program: Program, eagerly: bool) -> None:
    function, asked = program.build()

    report = tb_gradflow.explain(function, variables=asked)

    assert tuple(each.status for each in report.variables.values()) == program.statuses
    assert tuple(each.cause for each in report.findings if each.severity != "info") == program.causes
    assert report.healthy is (not program.causes)


@pytest.mark.parametrize("program", [each for each in PROGRAMS if not any(each.causes)], ids=lambda each: each.name)
def test_tensorflow_itself_gives_the_gradients_of_a_repaired_program(program: Program) -> None:
    function, asked = program.build()

    with tf.GradientTape() as tape:
        tape.watch([each for each in asked if each.dtype.is_floating])
        result = function()
    gradients = tape.gradient(result, asked)

    received = tuple(GETS if each is not None and np.any(each) else "integer" for each in gradients)
    assert received == program.statuses


# Of each program its statuses, and the causes of what is more than information.
V1 = {
    "square": ([GETS], []),
    "floor": (["disconnected"], ["nondiff_rounding"]),
    "sequence_mask": (["disconnected"], ["nondiff_comparison"]),
    "gather": ([GETS, "integer"], []),
    "a + delta": (["unused"], ["output_not_used"]),
    "a + delta, repaired": ([GETS], []),
    "detour": (["zero"], ["nondiff_rounding"]),
    "custom floor": ([GETS], []),
    "five times": ([GETS], []),
    "floor as identity": ([GETS, GETS], []),
}


def test_the_seeds_programs_for_tensorflow_1_are_answered_as_they_stand() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.seeds.v1_programs"],
        cwd=ROOT,
        env={**environment(tensorflow=True), "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])

    for name, answer in told.items():
        assert (answer["statuses"], answer["causes"]) == V1[name.removesuffix(", fed")], name
        assert answer["healthy"] is (not answer["causes"]), name
    assert {name.removesuffix(", fed") for name in told} == set(V1)


def test_the_page_with_all_of_them_says_what_the_reports_say() -> None:
    """`python -m tests.seeds.table` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page()
