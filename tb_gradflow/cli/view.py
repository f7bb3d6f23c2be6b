"""`tb-gradflow view`: the page of the plugin, without TensorBoard."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tb_gradflow.cli.run import LOGDIR

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

GOOD = 0


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "view",
        help="show the runs of a log directory in a browser, without TensorBoard",
        description='Serve the page that TensorBoard shows in the tab "Gradient flow", on this machine only '
        "(127.0.0.1). New runs and steps appear while a training writes them. Ctrl-C ends it. Needs no TensorFlow, and "
        "does not start TensorBoard.",
        epilog="Exit status: 0, or 2 if there is no log, or if the port is in use.",
    )
    parser.add_argument(
        "logdir",
        metavar="LOGDIR",
        nargs="?",
        default=LOGDIR,
        help=f"a directory with one or more runs (default: {LOGDIR})",
    )
    parser.add_argument("--port", metavar="N", type=int, default=0, help="port of the server (default: any free one)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from tb_gradflow.serve.server import server  # takes longer than the rest; the parser does not need it

    with server(options.logdir, options.port) as serving:
        print(f"Open http://localhost:{serving.port}/  (Ctrl-C ends)", flush=True)
        serving.serve_forever()  # until Ctrl-C, which it handles
    print()
    return GOOD
