"""Trains demonstrations: `python -m tb_gradflow.demo LOGDIR NAME …`.

A separate program, so that TensorFlow's memory is freed when the training is over.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from tb_gradflow.demo.gallery import Demo, chosen
from tb_gradflow.errors import GradFlowError

BAD_INPUT = 2


def main(arguments: Sequence[str]) -> int:
    logdir, *names = arguments
    # TensorFlow reads these once, when it is loaded. Its messages about the machine do not help the user here.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    try:
        demos = chosen(names)
        for number, demo in enumerate(demos, start=1):
            print(f"[{number}/{len(demos)}] {demo.name}: {demo.promise}\n{os.path.relpath(demo.path)}", flush=True)
            train(demo, logdir)
    except GradFlowError as error:
        print(f"tb-gradflow: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


def train(demo: Demo, logdir: str) -> None:
    """Trains every version of a demonstration, and reports its progress."""
    program = demo.load()
    import keras

    from tb_gradflow.trace.log.findings import try_fixes

    for (name, directory), (_, fixed) in zip(demo.runs(logdir).items(), demo.variants, strict=True):
        print(f"\n{name}: compiling and training", flush=True)
        began = time.monotonic()
        program(directory, fixed=fixed)
        try_fixes()
        print(f"{name}: trained in {time.monotonic() - began:.0f} s, recorded in {directory}", flush=True)
        keras.utils.clear_session()
    print(flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
