"""The line of the user's code that created an op, and the function that this line called.

A traceback runs from the program's first line to TensorFlow's op constructor. The user's line is the innermost line
that belongs neither to an installed package nor to the standard library. The frame below it gives the function that the
user knows, such as `tf.sequence_mask`, instead of the op's type (`Less`), which would mean nothing to them.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
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

# The function that calls the user's step.
STEP = os.path.join(PACKAGE, "trace", "protection", "beside.py")
EXPLAIN = os.path.join(PACKAGE, "trace", "explain", "one_step.py")

# Functions that only forward a call to the function that the user called.
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

# The user's line that starts a training says nothing about the ops in it.
_ENTRY_POINTS = frozenset({"fit", "train_on_batch", "evaluate", "predict", "make_train_function"})

# Python's operators reach TensorFlow through these files; the op's type then identifies the operator.
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
    """The origin of an op.

    Attributes:
        source: The user's line; None if no line of theirs created the op.
        api: The function that this line called; None if unknown.
        is_layer: Whether that is a function of `keras.ops` that acts as a layer in a functional model.
    """

    source: Source | None
    api: str | None
    is_layer: bool = False


def origin_of(frames: Sequence[Frame], op_type: str, *, keep_source: bool = True) -> Origin:
    """The user's line in `frames` (outermost first) that created an op of type `op_type`, and the function that it
    called.

    Frames outside of the recorder's own step, under which every op is traced, are ignored: they only show how the
    training was started. With `keep_source` false the line is left out.
    """
    index = users_frame(frames)
    if index >= 0:
        called = first_meant(frames[index + 1 :])
        if called is None or called.function not in _ENTRY_POINTS:
            source = _source(frames[index]) if keep_source else None
            return Origin(source, _called_name(called, op_type) or drawn_from(frames[index + 1 :]))
    api, is_layer = _layer_call(frames, op_type)
    return Origin(None, api or _step_itself(frames, op_type), is_layer)


def _step_itself(frames: Sequence[Frame], op_type: str) -> str | None:
    """The library function that is the step itself, if there is no user's line: `tf.floor` in `explain(tf.floor,
    ...)`.
    """
    inside = [index for index, frame in enumerate(frames) if frame.file == EXPLAIN]
    called = first_meant(frames[inside[-1] + 1 :]) if inside else None
    return _called_name(called, op_type)


def users_frame(frames: Sequence[Frame]) -> int:
    """Index of the innermost frame of the user's code inside the recorder's step; -1 if there is none."""
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


def _layer_call(frames: Sequence[Frame], op_type: str) -> tuple[str | None, bool]:
    """The first exported function below the layer call, for ops that a library's layer created itself; or the function
    of `keras.ops` that acts as a layer in a functional model, and whether it is one.
    """
    for index in range(len(frames) - 1, -1, -1):
        frame = frames[index]
        if "/layers/" in frame.file and frame.function == "call":
            return _called_name(first_meant(frames[index + 1 :]), op_type), False
        if _KERAS_OPS in frame.file and frame.function == "call":
            return _name_in_keras_ops(first_meant(frames[index + 1 :])), True
    return None, False


_KERAS_OPS, _KERAS_BACKEND = "/keras/src/ops/", "/keras/src/backend/tensorflow/"


def _name_in_keras_ops(called: Frame | None) -> str | None:
    """Implementations in Keras have the same names as the functions that it exports."""
    if called is None or _KERAS_BACKEND not in called.file:
        return None
    exported = getattr(sys.modules.get("keras"), "ops", None)
    return f"keras.ops.{called.function}" if hasattr(exported, called.function) else None


def first_meant(frames: Sequence[Frame]) -> Frame | None:
    """The outermost frame that does more than forward a call, as the observers of this package do too."""
    for frame in frames:
        if not frame.file.endswith(_WRAPPERS) and not frame.file.startswith(PACKAGE):
            return frame
    return None


def _source(frame: Frame) -> Source:
    return Source(frame.file, frame.line, frame.function, written_at(frame.file, frame.line))


def in_log(source: Source) -> Source:
    """The line as it appears in the log, with a path that reveals nothing about the machine. See `path_in_log`."""
    return replace(source, file=path_in_log(source.file, working_directory()))


def working_directory() -> str:
    """The working directory; empty if the program has deleted it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def name_of_line(file: str, line: int) -> str:
    """A name for a line, such as `train_31`."""
    stem, _ = os.path.splitext(os.path.basename(path_in_log(file, working_directory())))
    stem = stem.replace("[", "").replace("]", "")  # a notebook cell is named `In[3]`
    return f"{stem}_{line}"


@functools.lru_cache(maxsize=4096)
def path_in_log(file: str, directory: str) -> str:
    """The path relative to the working directory; otherwise relative to the directory from which Python imports it;
    otherwise the bare file name.

    Never absolute: logs are shown to others, and a home directory is private. A notebook cell has the notebook's name
    for it. Names that are not paths are unchanged.
    """
    cell = _cell_of(file)
    if cell is not None:
        return cell
    if file.startswith("<") or not os.path.isabs(file):
        return file.replace(os.sep, "/")
    # The longest root is the one from which a person would name the file.
    imported_from = [os.path.normpath(os.path.join(directory, entry)) for entry in sys.path if entry]
    roots = sorted(filter(os.path.isabs, imported_from), key=len, reverse=True)
    here = (directory, os.path.realpath(directory)) if directory else ()
    for path in dict.fromkeys((file, os.path.realpath(file))):
        for root in (*here, *roots):
            inside = root.rstrip(os.sep) + os.sep
            # Relative to the root of the file system it would be absolute except for its first character.
            if inside != os.sep and path.startswith(inside):
                return path[len(inside) :].replace(os.sep, "/")
    return os.path.basename(file)


# The file name that Colab gives a cell's code, in its older IPython: `<ipython-input-3-0a1b2c>`,
# `/tmp/ipython-input-3-123.py`.
_COLAB_CELL = re.compile(r"(?:<|.*/)ipython-input-(\d+)-\w+(?:>|\.py)")


def _cell_of(file: str) -> str | None:
    """`In[3]` for the pseudo-file of a notebook cell in IPython; None for other files."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    if number is None and (named := _COLAB_CELL.fullmatch(file)):
        number = named[1]
    return None if number is None else f"In[{number}]"


@functools.lru_cache(maxsize=4096)
def is_users(file: str) -> bool:
    """Whether a file is the user's own: neither in an installed package nor in the standard library."""
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
    """The public name of the function `function` defined in `file`: `tf.sequence_mask`, `keras.ops.round`.

    None for functions without a public name.
    """
    module = _module_of(file)
    if module is None:
        return None
    names = _exported_names(getattr(module, function, None))
    if names:
        return "tf." + str(min(names, key=_readability))
    if module.__name__.startswith("keras.src.ops"):
        return f"keras.ops.{function}"
    if module.__name__ == "keras.src.random.random":
        return f"keras.random.{function}"
    if module.__name__.startswith(("keras.src.losses", "keras.src.activations")):
        return f"keras.{module.__name__.split('.')[2]}.{function}"
    return None


def _exported_names(function: Any) -> tuple[str, ...]:
    """Public names of a TensorFlow function, which `tf_export` stores on its innermost decorator."""
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
    """The loaded module whose code is in `file`."""
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
