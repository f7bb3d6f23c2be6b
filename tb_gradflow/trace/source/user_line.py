"""Which line of the user's code made an op, and which function that line called.

A traceback runs from the program's first line to TensorFlow's op constructor. The user's line is the innermost
one that belongs neither to an installed package nor to the standard library; the frame that it called into names
the function they know, such as `tf.sequence_mask`, where the op's own type (`Less`) would mean nothing to them.
"""

from __future__ import annotations

import functools
import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_gradflow.record.schema import Source
from tb_gradflow.trace.source.frames import PACKAGE, Frame
from tb_gradflow.trace.source.statements import written_at
from tb_gradflow.trace.source.tfp_samples import drawn_from

# Where the user's step is called from.
STEP = os.path.join(PACKAGE, "trace", "step", "instrumented_step.py")
EXPLAIN = os.path.join(PACKAGE, "trace", "explain", "one_step.py")

# Functions that only pass a call on to the one the user meant.
_WRAPPERS = (
    "traceback_utils.py",
    "dispatch.py",
    "deprecation.py",
    "weak_tensor_ops.py",
    "py_builtins.py",
    "/util/nest.py",
    "/util/nest_util.py",
    "/backend/tensorflow/sparse.py",
)

# The user's line that starts a training says nothing about the ops inside it.
_ENTRY_POINTS = frozenset({"fit", "train_on_batch", "evaluate", "predict", "make_train_function"})

# Python's operators reach TensorFlow through these files; the op's type then says which operator it was.
_OPERATOR_FILES = ("tensor_math_operator_overrides.py", "override_binary_operator.py", "tensor_getitem_override.py")

_OPERATORS = {
    "Less": "<",
    "LessEqual": "<=",
    "Greater": ">",
    "GreaterEqual": ">=",
    "Equal": "==",
    "NotEqual": "!=",
    "AddV2": "+",
    "Sub": "-",
    "Mul": "*",
    "RealDiv": "/",
    "FloorDiv": "//",
    "FloorMod": "%",
    "Pow": "**",
    "MatMul": "@",
    "BatchMatMulV2": "@",
    "LogicalAnd": "&",
    "LogicalOr": "|",
    "LogicalNot": "~",
    "StridedSlice": "[]",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an op comes from.

    Attributes:
        source: The user's line; null if no line of theirs made the op.
        api: The function that line called; null if unknown.
    """

    source: Source | None
    api: str | None


def origin_of(frames: Sequence[Frame], op_type: str, *, keep_source: bool = True) -> Origin:
    """The user's line in `frames` (outermost first) that made an op of type `op_type`, and what it called.

    Looks no further out than the recorder's own step, which every traced op runs under: the lines beyond it
    say how training was started. With `keep_source` false the line is left out.
    """
    index = users_frame(frames)
    if index >= 0:
        called = first_meant(frames[index + 1 :])
        if called is None or called.function not in _ENTRY_POINTS:
            source = _source(frames[index]) if keep_source else None
            return Origin(source, _called_name(called, op_type) or drawn_from(frames[index + 1 :]))
    return Origin(None, _layer_call(frames, op_type) or _step_itself(frames, op_type))


def _step_itself(frames: Sequence[Frame], op_type: str) -> str | None:
    """The function of a library that is the step, where the user has given it no line of their own: `tf.floor` in
    `explain(tf.floor, ...)`."""
    inside = [index for index, frame in enumerate(frames) if frame.file == EXPLAIN]
    called = first_meant(frames[inside[-1] + 1 :]) if inside else None
    return _called_name(called, op_type)


def users_frame(frames: Sequence[Frame]) -> int:
    """Index of the innermost frame of the user's own inside the recorder's step; -1 if there is none."""
    for index in range(len(frames) - 1, -1, -1):
        if frames[index].file == STEP:
            break
        if is_users(frames[index].file):
            return index
    return -1


def _called_name(called: Frame | None, op_type: str) -> str | None:
    if called is None:
        return None
    if called.file.endswith(_OPERATOR_FILES):
        return _OPERATORS.get(op_type)
    return api_name(called.file, called.function)


def _layer_call(frames: Sequence[Frame], op_type: str) -> str | None:
    """The first exported function below the layer call, for ops that a library's layer made by itself; or the function
    of `keras.ops` that stands in a functional model as a layer does."""
    for index in range(len(frames) - 1, -1, -1):
        frame = frames[index]
        if "/layers/" in frame.file and frame.function == "call":
            return _called_name(first_meant(frames[index + 1 :]), op_type)
        if _KERAS_OPS in frame.file and frame.function == "call":
            return _name_in_keras_ops(first_meant(frames[index + 1 :]))
    return None


_KERAS_OPS, _KERAS_BACKEND = "/keras/src/ops/", "/keras/src/backend/tensorflow/"


def _name_in_keras_ops(called: Frame | None) -> str | None:
    """The functions that do the work in Keras have the names of those that it exports."""
    if called is None or _KERAS_BACKEND not in called.file:
        return None
    exported = getattr(sys.modules.get("keras"), "ops", None)
    return f"keras.ops.{called.function}" if hasattr(exported, called.function) else None


def first_meant(frames: Sequence[Frame]) -> Frame | None:
    """The outermost frame that does more than pass a call on."""
    for frame in frames:
        if not frame.file.endswith(_WRAPPERS):
            return frame
    return None


def _source(frame: Frame) -> Source:
    return Source(frame.file, frame.line, frame.function, written_at(frame.file, frame.line))


def in_log(source: Source) -> Source:
    """The line as the log names it: by a path that says nothing of the machine. See `path_in_log`."""
    return replace(source, file=path_in_log(source.file, os.getcwd()))


@functools.lru_cache(maxsize=4096)
def path_in_log(file: str, directory: str) -> str:
    """Relative to the working directory; elsewhere to where Python imports it from; the bare name if neither holds it.

    Never absolute: a log is shown to others, and a home directory is nobody's business. A cell of a notebook is called
    what the notebook calls it. What else is no path stays as it is.
    """
    cell = _cell_of(file)
    if cell is not None:
        return cell
    if file.startswith("<") or not os.path.isabs(file):
        return file.replace(os.sep, "/")
    # The longest root is the one that a person would name the file from.
    roots = sorted((os.path.abspath(entry) for entry in sys.path if entry), key=len, reverse=True)
    for path in dict.fromkeys((file, os.path.realpath(file))):
        for root in (directory, os.path.realpath(directory), *roots):
            inside = root.rstrip(os.sep) + os.sep
            # Relative to the root of all files it would be absolute in everything but its first letter.
            if inside != os.sep and path.startswith(inside):
                return path[len(inside) :].replace(os.sep, "/")
    return os.path.basename(file)


def _cell_of(file: str) -> str | None:
    """`In[3]`, for the file that IPython pretends a notebook's cell to be; null for others."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return None if number is None else f"In[{number}]"


@functools.lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file is the user's own, neither an installed package nor the standard library."""
    if file.startswith(PACKAGE):
        return "/demo/" in file
    if "site-packages" in file or "dist-packages" in file:
        return False
    if file.startswith("<") and not file.startswith(("<ipython", "<string>", "<stdin>")):
        return False
    return not file.startswith(_library_roots())


@functools.lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    roots = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]}
    roots.update(site.getsitepackages() if hasattr(site, "getsitepackages") else ())
    for package in ("tensorflow", "keras", "tf_keras", "autograph"):
        module = sys.modules.get(package)
        if module is not None and getattr(module, "__file__", None):
            roots.add(os.path.dirname(str(module.__file__)))
    return tuple(root.rstrip(os.sep) + os.sep for root in roots)


@functools.lru_cache(maxsize=4096)
def api_name(file: str, function: str) -> str | None:
    """What a user calls the function `function` defined in `file`: `tf.sequence_mask`, `keras.ops.round`.

    Null for functions without a public name.
    """
    module = _module_of(file)
    if module is None:
        return None
    names = _exported_names(getattr(module, function, None))
    if names:
        return "tf." + str(min(names, key=_readability))
    if module.__name__.startswith("keras.src.ops"):
        return f"keras.ops.{function}"
    if module.__name__.startswith(("keras.src.losses", "keras.src.activations")):
        return f"keras.{module.__name__.split('.')[2]}.{function}"
    return None


def _exported_names(function: Any) -> tuple[str, ...]:
    """Public names of a TensorFlow function, which `tf_export` leaves on the innermost of its decorators."""
    while function is not None:
        names = getattr(function, "_tf_api_names", None) or getattr(function, "_tf_api_names_v1", None)
        if names:
            return tuple(names)
        function = getattr(function, "__wrapped__", None)
    return ()


def _readability(name: str) -> tuple[int, int, str]:
    return name.startswith(("raw_ops", "compat")), name.count("."), name


@functools.lru_cache(maxsize=1024)
def _module_of(file: str) -> Any:
    """The loaded module that `file` holds the code of."""
    parts = os.path.splitext(file)[0].replace(os.sep, "/").split("/")
    for root in ("tensorflow", "keras", "tf_keras", "tensorflow_probability"):
        if root in parts:
            name = ".".join(parts[len(parts) - 1 - parts[::-1].index(root) :])
            if name in sys.modules:
                return sys.modules[name]
            name = ".".join(parts[parts.index(root) :])
            try:
                return sys.modules.get(name) or importlib.import_module(name)
            except ImportError:
                return None
    return None
