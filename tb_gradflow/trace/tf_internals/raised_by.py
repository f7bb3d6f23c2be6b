"""Which op's gradient function raised an error."""

from __future__ import annotations

import traceback

from tensorflow.python.eager import backprop


def differentiated(error: BaseException) -> str:
    """The type of the op; empty if no gradient function raised the error, or if that is not known."""
    calls = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        # TensorFlow's function that calls the gradient function of an op for a tape.
        if (frame.f_code.co_filename, frame.f_code.co_name) == (backprop.__file__, "_gradient_function")
    ]
    return str(calls[-1].f_locals.get("op_name", "")) if calls else ""
