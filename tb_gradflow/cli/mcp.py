"""`tb-gradflow mcp`: a Model Context Protocol server, by which a program that helps people program reads the runs.

The tools return what the other commands print as JSON. All but one only read; that one runs a program of the user's.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from tb_gradflow.api import Log
from tb_gradflow.cli.compare import compared
from tb_gradflow.cli.diverge import diverged
from tb_gradflow.cli.fix import passages_of
from tb_gradflow.cli.run import LOGDIR
from tb_gradflow.cli.runs import chosen, newest_in, opened
from tb_gradflow.cli.trial import run_and_try
from tb_gradflow.errors import GradFlowError, LogError, SetupError
from tb_gradflow.record.codec import encode
from tb_gradflow.serve.reports.fixing import fixes_of, patch
from tb_gradflow.serve.runs.standing import standing_or_unknown, unknown, worst_first
from tb_gradflow.serve.terminal.report_text import WELL
from tb_gradflow.version import VERSION

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

Json = dict[str, Any]

GOOD = 0

INSTRUCTIONS = """\
Where and why gradients stop in TensorFlow and Keras trainings that tb-gradflow has recorded. Record a program with \
`tb-gradflow run train.py`; then `runs`, `report`, `evidence` and `edits` say what is wrong and what to write instead. \
`try_fixes` runs a program and tries its edits on copies of a step. Change the code, record it again, and `compare` \
the two runs."""


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "mcp",
        help="serve the runs of a log directory to programs, by the Model Context Protocol",
        description="A Model Context Protocol server on standard input and output, for programs that help people "
        "program. Tools: runs, report, evidence, edits, compare and diverge, which only read; and try_fixes, which "
        "runs a program below the working directory. Needs the extra `mcp`: "
        "`pip install tensorboard-plugin-gradflow[mcp]`. Only try_fixes needs TensorFlow.",
        epilog="Exit status: 0 when its input ends, or 2 if the extra is not installed.",
    )
    parser.add_argument(
        "logdir", metavar="LOGDIR", nargs="?", default=LOGDIR, help=f"a directory with runs (default: {LOGDIR})"
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise SetupError(
            f"this command needs the extra `mcp` ({error}): `pip install tensorboard-plugin-gradflow[mcp]`"
        ) from error
    server = MCPServer("tb-gradflow", instructions=INSTRUCTIONS, version=VERSION, log_level="WARNING")
    tools = Tools(options.logdir)
    only_reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in (tools.runs, tools.report, tools.evidence, tools.edits, tools.compare, tools.diverge):
        server.add_tool(told(tool, ToolError), description=inspect.getdoc(tool), annotations=only_reads)
    runs_code = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
    trial = in_thread(told(tools.try_fixes, ToolError))
    server.add_tool(trial, description=inspect.getdoc(tools.try_fixes), annotations=runs_code)
    if sys.stdin.isatty():
        print("Speaks the Model Context Protocol on standard input and output. Ctrl-C ends it.", file=sys.stderr)
    server.run()
    return GOOD


def told(tool: Callable[..., Json], as_error: type[Exception]) -> Callable[..., Json]:
    """The same tool; the client gets the words of an error that it can act on, and of no other one."""

    @functools.wraps(tool)
    def called(*given: Any, **named: Any) -> Json:
        try:
            return tool(*given, **named)
        except GradFlowError as error:
            raise as_error(str(error)) from error

    return called


def in_thread(tool: Callable[..., Json]) -> Callable[..., Awaitable[Json]]:
    """The same tool for a call that takes long: the server answers other requests meanwhile."""
    import anyio.to_thread

    @functools.wraps(tool)
    async def called(*given: Any, **named: Any) -> Json:
        return await anyio.to_thread.run_sync(functools.partial(tool, *given, **named))

    return called


class Tools:
    """The tools, over the runs of one directory. Their docstrings and signatures are what a client sees."""

    def __init__(self, logdir: str) -> None:
        self._logdir = logdir

    def runs(self) -> Json:
        """List the recorded runs, worst first.

        For each: its health (error, warning, healthy, unknown), a summary, the worst cause with its line of code, the
        first step with a problem, the last step, and the loss.
        """
        found = []
        for name, directory in chosen(self._logdir, None).items():
            try:
                found.append((name, standing_or_unknown(opened(self._logdir, name, directory).recorded)))
            except LogError as error:
                found.append((name, unknown(str(error))))
        return {"runs": [{"run": name, **standing.to_json()} for name, standing in worst_first(found)]}

    def report(self, run: str | None = None, step: int | None = None, all_variables: bool = False) -> Json:
        """The report of one recorded step: findings with cause, line of code, fix, edit and evidence, and a verdict.

        `run` is a name from `runs` (default: the newest), `step` a recorded step (default: the last). `statuses` counts
        the variables by status; `variables` lists those with a problem, or all with `all_variables`.
        """
        name, log = self._log(run)
        report = log.report(step)
        whole = report.to_dict()
        statuses = Counter(variable["status"] for variable in whole["variables"])
        if not all_variables:
            whole["variables"] = [each for each in whole["variables"] if each["status"] not in WELL]
        return {"run": name, "step": report.step, "summary": report.summary, "statuses": statuses, **whole}

    def evidence(self, run: str | None = None, step: int | None = None) -> Json:
        """What was measured for each finding by running the step again with one thing changed.

        `evidence` is, for example, the effect of moving a variable that gets no gradient; `tried` is the result of an
        edit.
        `verdict` has what was ruled out, `not_known` what could not be determined.
        """
        name, log = self._log(run)
        report = log.report(step)
        whole = report.to_dict()
        keys = ("cause", "severity", "variables", "message", "evidence", "tried", "examples")
        return {
            "run": name,
            "step": report.step,
            "verdict": whole["verdict"],
            "findings": [{key: finding[key] for key in keys} for finding in whole["findings"]],
            "not_known": list(report.diagnosis.unverified),
        }

    def edits(self, run: str | None = None) -> Json:
        """The fixes of a run as edits of the user's source, and as one unified diff for `git apply`.

        Nothing is written. `left_out` are edits of lines that another edit changes too.
        """
        name, log = self._log(run)
        report = log.report()
        fixes = fixes_of(report.findings)
        return {
            "run": name,
            "step": report.step,
            "patch": patch(fixes.edits, passages_of(log, report)) if fixes.edits else "",
            "edits": [encode(edit) for edit in fixes.edits],
            "left_out": [encode(edit) for edit in fixes.left_out],
        }

    def compare(self, before: str, now: str) -> Json:
        """What changed between two runs, such as before and after an edit.

        Variables that are better or worse, and findings that are new or gone.
        """
        return compared(self._logdir, before, now).to_dict()

    def diverge(self, run_a: str, run_b: str) -> Json:
        """The first step, op and direction at which two runs that should be equal differ beyond rounding.

        Also the settings, versions and lines of code that differ.
        """
        return diverged(self._logdir, run_a, run_b).to_dict()

    def try_fixes(
        self, program: str, arguments: list[str] | None = None, seconds: float = 600, keep: bool = False
    ) -> Json:
        """Run a training program and try its fixes: `tried` says for each edit what came out of it.

        `program` is a Python file below the server's working directory; it runs as `python program arguments` does,
        with all that it writes itself, for at most `seconds`. At its end each edit is made in memory and run on copies
        of a recorded step, then trained for 20 steps and compared with the same without it. No source file is changed,
        and the log is only kept, as new runs, with `keep`.
        """
        return run_and_try(program, arguments or [], seconds, self._logdir if keep else None)

    def _log(self, run: str | None) -> tuple[str, Log]:
        """A run by its name, or else the one that was written last; with its name in `runs`. Raises LogError."""
        known = chosen(self._logdir, run)
        name = newest_in(self._logdir) if run is None else next(iter(known))
        return name, opened(self._logdir, name, known[name])
