"""Dispatches to the subcommands, and turns errors that a user can act on into exit statuses."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from tb_gradflow.errors import GradFlowError
from tb_gradflow.plain import clean
from tb_gradflow.version import VERSION

COMMANDS = ("run", "report", "view", "compare", "diverge", "fix", "cause", "mcp", "demo", "doctor", "completion")
"""Each is a module in this package, loaded on demand: `run` does not wait for what the reports need."""

BAD_INPUT = 2
# The exit status that a shell gives a program ended by SIGINT or SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status of the process."""
    # Op names and code may contain any character; a terminal that cannot show one must not end the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        make_parser().print_help()
        return 0
    options = make_parser(given[:1]).parse_args(given)
    try:
        status: int = options.command(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except GradFlowError as error:
        print(clean(f"tb-gradflow: {error}"), file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone. Without this, Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


class Parser(argparse.ArgumentParser):
    """Adds to an error about a word that does not exist the one that looks most like it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._added: list[argparse.Action] = []
        super().__init__(*args, **kwargs)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        self._added.append(super().add_argument(*args, **kwargs))
        return self._added[-1]

    def add_subparsers(self, **kwargs: Any) -> Any:
        self._added.append(commands := super().add_subparsers(**kwargs))
        return commands

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"unrecognized arguments: (-[^ =]+)|invalid choice: '([^']*)'", message)
        close = difflib.get_close_matches(wrong[1] or wrong[2], [*self.words()], 1) if wrong is not None else []
        super().error(message + "".join(f"; did you mean {word}?" for word in close))

    def words(self) -> Iterator[str]:
        """Its options, choices and commands, and the options of its commands."""
        for action in self._added:
            yield from action.option_strings
            yield from map(str, action.choices or ())
            if isinstance(action.choices, dict):  # of commands
                for command in action.choices.values():
                    yield from command.words()


def make_parser(wanted: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser with all commands; if the first word names a command, with that one only."""
    parser = Parser(
        prog="tb-gradflow", description="See where the gradient goes in a TensorFlow or Keras model, and why it stops."
    )
    parser.add_argument("--version", action="version", version=f"tb-gradflow {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in [each for each in COMMANDS if each in wanted] or COMMANDS:
        importlib.import_module(f"tb_gradflow.cli.{name}").add_parser(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
