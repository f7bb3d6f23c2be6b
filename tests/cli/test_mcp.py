"""`tb-gradflow mcp`, asked by the client of the official package, over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tb_gradflow.cli.diverge import diverged
from tests.demo.training import Trained
from tests.serve.processes import environment

THRESHOLD = "sensors/step_filter/threshold"

Call = tuple[str, dict[str, Any]]


def asked(logdir: Path, *calls: Call, cwd: Path | None = None) -> tuple[list[Any], list[Any]]:
    """The tools of a server, and its answers to calls of them."""
    pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    import anyio
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tb_gradflow", "mcp", str(logdir)],
        env=environment(tensorflow=cwd is not None),
        cwd=cwd,
    )

    async def session() -> tuple[list[Any], list[Any]]:
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            return list(tools), [await client.call_tool(name, given) for name, given in calls]

    found: tuple[list[Any], list[Any]] = anyio.run(session)
    return found


def answers(logdir: Path, *calls: Call) -> list[Any]:
    _, results = asked(logdir, *calls)
    assert not any(result.is_error for result in results), results
    # Clients that know no structured content get the same as text.
    assert [json.loads(result.content[0].text) for result in results] == [each.structured_content for each in results]
    return [result.structured_content for result in results]


def tb_diverge(logdir: Path) -> Any:
    """What the command says."""
    return diverged(str(logdir), "step_filter/broken", "step_filter/fixed").to_dict()


def test_a_program_finds_out_what_is_wrong_and_what_to_write(step_filter: Trained) -> None:
    broken = tb_gradflow.open_log(step_filter.logdir / "step_filter" / "broken").report()

    runs, report, of_all, evidence, edits, comparison, divergence = answers(
        step_filter.logdir,
        ("runs", {}),
        ("report", {"run": "step_filter/broken"}),
        ("report", {"run": "step_filter/broken", "step": 0, "all_variables": True}),
        ("evidence", {"run": "step_filter/broken"}),
        ("edits", {"run": "step_filter/broken"}),
        ("compare", {"before": "step_filter/broken", "now": "step_filter/fixed"}),
        ("diverge", {"run_a": "step_filter/broken", "run_b": "step_filter/fixed"}),
    )

    assert [(run["run"], run["health"]) for run in runs["runs"]] == [
        ("step_filter/broken", "error"),
        ("step_filter/fixed", "healthy"),
    ]
    known = broken.to_dict()
    assert (report["run"], report["step"], report["summary"]) == ("step_filter/broken", broken.step, broken.summary)
    assert {key: report[key] for key in known if key != "variables"} == {
        key: value for key, value in known.items() if key != "variables"
    }
    assert [variable["name"] for variable in report["variables"]] == [THRESHOLD]
    assert report["statuses"] == {"connected": 4, "disconnected": 1}
    assert (of_all["step"], len(of_all["variables"])) == (0, 5)
    [found] = evidence["findings"]
    assert (found["cause"], found["evidence"]) == ("nondiff_comparison", known["findings"][0]["evidence"])
    assert found["evidence"][0]["text"].startswith(f"Moving each element of `{THRESHOLD}`")
    assert edits["edits"] == [known["findings"][0]["edit"]]
    assert edits["left_out"] == []
    assert f"\n-{edits['edits'][0]['before']}\n" in edits["patch"]
    assert [each["cause"] for each in comparison["findings"] if each["change"] == "went"] == ["nondiff_comparison"]
    assert divergence == tb_diverge(step_filter.logdir)


ROUNDED = """\
import tensorflow as tf
import beside
span = tf.Variable(2.6, name="span")
for _ in range(4):
    with tf.GradientTape() as tape:
        loss = (tf.round(span * 3.0) - 5.0) ** 2
    gradient = tape.gradient(loss, span)
print("trained")
"""


def test_fixes_are_tried_and_nothing_is_written_unasked(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ROUNDED, encoding="utf-8")
    (tmp_path / "beside.py").write_text("", encoding="utf-8")
    call = "try_fixes", {"program": "train.py"}

    _, [once] = asked(tmp_path / "logs", call, cwd=tmp_path)
    left = sorted(each.name for each in tmp_path.iterdir())
    _, [kept, outside, *impossible] = asked(
        tmp_path / "logs",
        (call[0], {**call[1], "keep": True}),
        (call[0], {"program": "/etc/passwd"}),
        (call[0], {"program": "\0"}),
        (call[0], {**call[1], "arguments": ["\0"]}),
        (call[0], {**call[1], "seconds": 1e300}),
        cwd=tmp_path,
    )

    assert left == ["beside.py", "train.py"]
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == ROUNDED
    assert once.structured_content["exit_status"] == 0
    assert "trained" in once.structured_content["output"]
    [run] = once.structured_content["runs"]
    [finding] = run["findings"]
    assert finding["cause"] == "nondiff_rounding"
    assert finding["tried"]["works"]
    assert "stop_gradient" in run["patch"]
    [name] = [each["run"] for each in kept.structured_content["runs"]]
    assert tb_gradflow.open_log(tmp_path / "logs" / name).report().findings
    assert outside.is_error
    assert "is no file below" in outside.content[0].text
    for each, said in zip(impossible, ("is no file below", "cannot be started", "seconds must be"), strict=True):
        assert said in each.content[0].text


def test_the_tools_say_what_they_take_and_which_only_read(tmp_path: Path) -> None:
    tools, _ = asked(tmp_path)

    assert [tool.name for tool in tools if tool.annotations.read_only_hint] == [
        "runs",
        "report",
        "evidence",
        "edits",
        "compare",
        "diverge",
    ]
    assert [tool.name for tool in tools if not tool.annotations.read_only_hint] == ["try_fixes"]
    assert all(tool.description for tool in tools)
    assert [sorted(tool.input_schema["properties"]) for tool in tools] == [
        [],
        ["all_variables", "run", "step"],
        ["run", "step"],
        ["run"],
        ["before", "now"],
        ["run_a", "run_b"],
        ["arguments", "keep", "program", "seconds"],
    ]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("report", {"run": "nonsense"}), "has no run 'nonsense': it has step_filter/broken, step_filter/fixed"),
        (("evidence", {"step": 10**6}), "the nearest is"),
        (("compare", {"before": "a", "now": "b"}), "has no run 'a'"),
        (("report", {"step": "first"}), "valid integer"),
    ],
)
def test_an_error_is_an_answer_in_words(step_filter: Trained, call: Call, words: str) -> None:
    _, [result] = asked(step_filter.logdir, call)

    assert result.is_error
    assert words in result.content[0].text


def test_the_server_may_be_there_before_the_first_training(tmp_path: Path) -> None:
    _, results = asked(tmp_path / "logs", ("runs", {}), ("report", {}))

    assert all("does not exist: expected the directory" in result.content[0].text for result in results)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')\n")
    variables = environment(tensorflow=False)
    variables["PYTHONPATH"] = f"{tmp_path}:{variables['PYTHONPATH']}"

    done = subprocess.run(
        [sys.executable, "-m", "tb_gradflow", "mcp"], env=variables, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "`pip install tensorboard-plugin-gradflow[mcp]`" in done.stderr
