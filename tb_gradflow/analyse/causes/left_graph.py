"""Values that leave TensorFlow, or its tape, and come back as mere numbers."""

from __future__ import annotations

from tb_gradflow.analyse.evidence import Suspect, Verdict

_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})


def python_escape(suspect: Suspect) -> Verdict | None:
    """Python code computes the value: `tf.numpy_function`, or `tf.py_function` with NumPy in it."""
    return Verdict("python_escape", "error") if suspect.op.type in _PYTHON else None


def variable_assign(suspect: Suspect) -> Verdict | None:
    """The value is stored in a `tf.Variable`, or in a metric, and read back: the tape does not look into those."""
    written = suspect.op.writes is not None or suspect.op.type.startswith("Assign")
    stored = written or any(edge.passes == "state" for edge in suspect.edges)
    return Verdict("variable_assign", "error") if stored else None


def stop_gradient_misuse(suspect: Suspect) -> Verdict | None:
    """`tf.stop_gradient` on the only way. A straight-through estimator has another way, and is no suspect."""
    return Verdict("stop_gradient_misuse", "error") if suspect.op.type in ("StopGradient", "PreventGradient") else None
