"""The part of `tb-gradflow run` inside the program that it starts: it does nothing until the program imports
TensorFlow.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tb_gradflow import tracebacks
from tb_gradflow.recorded import Recorded

if TYPE_CHECKING:
    from tb_gradflow.record.report import Finding


def begin(told: Mapping[str, Any]) -> None:
    """Waits until TensorFlow is imported.

    Args:
        told: `log_dir`, the `options` of the recorder, and `manifest`: the file that lists the runs, and what was
            seen.
    """

    def write(**line: Any) -> None:
        import json

        with open(told["manifest"], "a", encoding="utf-8") as manifest:
            manifest.write(json.dumps(line) + "\n")

    def tell(name: str, is_there: bool) -> None:
        write(run=name, is_there=is_there)

    def see(sentence: str) -> None:
        write(seen=sentence)

    def log_dir() -> str:
        # Registered here, once TensorFlow is being used: exit handlers run in reverse order, so this one runs before
        # those that TensorFlow has registered by now.
        import atexit

        atexit.register(recorded.stop, ended=True)
        where: str = told["log_dir"]
        return where

    options = {**told["options"]}
    if options.get("on_finding"):
        options["on_finding"] = functools.partial(_run_command, options["on_finding"])
    recorded = Recorded(log_dir, options, tell=tell, see=see, begins=tracebacks.install)
    recorded.start()


def _run_command(command: str, finding: Finding) -> None:
    """Runs a shell command with a finding as JSON on its standard input; does not wait for it."""
    import json
    import subprocess
    import sys
    import tempfile

    from tb_gradflow.record.codec import encode
    from tb_gradflow.serve.reports.report import finding_as_json
    from tb_gradflow.serve.runs.finite import finite

    with tempfile.TemporaryFile() as given:
        given.write(json.dumps(finding_as_json(finite(encode(finding)))).encode() + b"\n")
        given.seek(0)
        # A shell starts the command and ends at once: the program, which may wait for its children, has no other one.
        starting = 'exec 3<&0; sh -c "$0" <&3 3<&- &'
        # The program's standard output is its own.
        output = subprocess.DEVNULL if sys.__stderr__ is None else 2
        subprocess.run(["sh", "-c", starting, command], stdin=given, stdout=output, stderr=output)
