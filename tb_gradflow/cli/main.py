"""Dispatches to the subcommands, and turns errors that a user can act on into exit statuses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tb_gradflow.cli import cause, compare, demo, fix, report, run
from tb_gradflow.errors import GradFlowError
from tb_gradflow.version import VERSION

COMMANDS = (run, report, compare, fix, cause, demo)

BAD_INPUT = 2
# What a shell reports of a program that SIGINT or SIGPIPE ended.
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status of the process."""
    # Op names and code may hold any character; a terminal that cannot show one must not end the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    options = make_parser().parse_args(arguments)
    try:
        status: int = options.command(options)
        sys.stdout.flush()
    except GradFlowError as error:
        print(f"tb-gradflow: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tb-gradflow", description="See where the gradient goes in a TensorFlow or Keras model, and why it stops."
    )
    parser.add_argument("--version", action="version", version=f"tb-gradflow {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
