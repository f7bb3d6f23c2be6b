"""`tb-gradflow completion`: what a shell needs to complete the command line, made from the commands' own parsers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

GOOD = 0

# zsh runs the same function, by its module for the completions of bash.
_BEFORE = {"bash": "", "zsh": "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"}

_FUNCTION = """\
_tb_gradflow() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="%(commands)s"
    else
        case "${COMP_WORDS[1]} $before" in
%(choices)s
        esac
        if [ -z "$words" ]; then
            case "${COMP_WORDS[1]} $word" in
%(options)s
            esac
        fi
    fi
    # Without words, the shell completes names of files.
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}
complete -o default -F _tb_gradflow tb-gradflow
"""


def add_parser(commands: Subparsers) -> None:
    parser = commands.add_parser(
        "completion",
        help="print what bash or zsh needs to complete this command",
        description="Print a script that completes commands, options and their choices. For bash, add to ~/.bashrc: "
        'eval "$(tb-gradflow completion bash)". For zsh, add to ~/.zshrc: eval "$(tb-gradflow completion zsh)".',
    )
    parser.add_argument("shell", choices=sorted(_BEFORE), help="the shell")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    from tb_gradflow.cli.main import make_parser

    print(_BEFORE[options.shell] + script(make_parser()), end="")
    return GOOD


def script(parser: argparse.ArgumentParser) -> str:
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    options: list[str] = []
    choices: list[str] = []
    for name, command in commands.choices.items():
        words = [word for action in command._actions for word in action.option_strings if word.startswith("--")]
        options.append(_case(f'"{name} -"*', words))
        for action in command._actions:
            if action.choices:
                # A choice that is no option comes right after the command.
                after = action.option_strings or [name]
                choices.append(_case("|".join(f'"{name} {word}"' for word in after), [*map(str, action.choices)]))
    names = [*commands.choices, "--help", "--version"]
    return _FUNCTION % {"commands": " ".join(names), "choices": "\n".join(choices), "options": "\n".join(options)}


def _case(pattern: str, words: list[str]) -> str:
    return f'            {pattern}) words="{" ".join(words)}" ;;'
