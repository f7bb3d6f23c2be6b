"""The options of the recorder as words of a command line: of `tb-gradflow run` and of `%%gradflow`."""

from __future__ import annotations

import argparse
from typing import Any

_NAMES = (
    "update_freq",
    "overhead",
    "tensors",
    "catch_nonfinite",
    "expected",
    "source",
    "terms",
    "examples",
    "try_fixes",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds those of `GradFlowCallback` that can be written as words."""
    parser.add_argument(
        "--update-freq",
        metavar="WHEN",
        type=_update_freq,
        default="auto",
        help=(
            "which steps to record: auto, as often as --overhead allows; epoch; or a number N for every N steps "
            "(default: auto)"
        ),
    )
    parser.add_argument(
        "--overhead",
        metavar="SHARE",
        type=_overhead,
        default=0.01,
        help="with auto, the share of the training time that recording may take (default: 0.01)",
    )
    parser.add_argument(
        "--tensors",
        choices=("all", "layers", "variables"),
        default="all",
        help="whose gradients to record (default: all)",
    )
    parser.add_argument(
        "--no-catch-nonfinite",
        dest="catch_nonfinite",
        action="store_false",
        help="do not catch the first step with a NaN or Inf gradient between recorded ones",
    )
    parser.add_argument(
        "--expected",
        metavar="PATTERN",
        action="append",
        default=[],
        help="name pattern of variables that are meant to get no gradient; may be given several times",
    )
    parser.add_argument(
        "--no-source", dest="source", action="store_false", help="keep file names and lines of code out of the log"
    )
    parser.add_argument("--terms", action="store_true", help="also record the gradient of each term of a loss")
    parser.add_argument(
        "--examples", action="store_true", help="keep in the log the rows of the batch that break a step"
    )
    parser.add_argument(
        "--try-fixes",
        action="store_const",
        const=True,
        default="auto",
        help="at the end, try the fixes on copies of a step, and train each for 20 steps (default: if "
        "that takes at most a tenth of the program's time)",
    )


def recorder_options(options: argparse.Namespace) -> dict[str, Any]:
    """What was given, by the names that `GradFlowCallback` has for it."""
    return {name: getattr(options, name) for name in _NAMES}


def _update_freq(text: str) -> Any:
    if text in ("auto", "epoch"):
        return text
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected auto, epoch or a number of steps of at least 1, got {text!r}")
    return int(text)


def _overhead(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share of the training time, above 0 and at most 1, got {text!r}")
    return share
