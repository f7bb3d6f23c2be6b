"""`tb-gradflow cause`: explains a cause, with an example program and its fix."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tb_gradflow.cli.terminal import look
from tb_gradflow.serve.terminal.causes import all_causes, page_of

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "cause",
        help="explain a cause from a report, such as nondiff_rounding",
        description="Print what a cause means, an example program, its report, and its fix. Needs no TensorFlow.",
        epilog="Exit status: 0, or 2 if there is no such cause.",
    )
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help=("the name of a cause, as in a report (default: list all)")
    )
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    lines = all_causes(look()) if options.name is None else page_of(options.name, look())
    print("\n".join(lines).rstrip("\n"))
    return 0
