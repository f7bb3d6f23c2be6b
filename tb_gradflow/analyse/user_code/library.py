"""The name of a function in the library that the user's file uses: `tf.nn.softmax` or `keras.ops.softmax`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.record.python import calls_within

_IN_TENSORFLOW = {
    "softmax": "nn.softmax", "log": "math.log", "sum": "reduce_sum", "mean": "reduce_mean", "clip": "clip_by_value",
    "softplus": "math.softplus", "leaky_relu": "nn.leaky_relu", "log_sigmoid": "math.log_sigmoid",
    "divide_no_nan": "math.divide_no_nan", "var": "math.reduce_variance", "logsumexp": "reduce_logsumexp",
    "take": "gather", "floor": "floor", "ceil": "math.ceil", "log_softmax": "nn.log_softmax",
    "prod": "reduce_prod", "max": "reduce_max", "cumulative_logsumexp": "math.cumulative_logsumexp",
    "arange": "range", "relu": "nn.relu", "log1p": "math.log1p", "power": "pow",
}  # fmt: skip
"""Functions whose name in TensorFlow differs from that in `keras.ops`."""


_NOT_IN_MATH = frozenset({
    "stop_gradient", "where", "cast", "clip_by_value", "reshape", "shape", "gather", "linspace", "range", "ones_like",
    "zeros_like", "tensordot", "einsum", "meshgrid", "zeros", "leaky_relu", "relu", "size",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Library:
    """Functions on tensors.

    Attributes:
        prefix: The part before a function's name: `tf`, `keras.ops`, `ops`.
        is_keras: Whether that is `keras.ops`.
        is_math: Whether it is `tf.math`, as `from tensorflow import math` has it, and no more of TensorFlow.
    """

    prefix: str
    is_keras: bool
    is_math: bool = False

    def __call__(self, function: str, *arguments: str) -> str:
        """A call, by the function's name in `keras.ops`."""
        return f"{self.name(function)}({', '.join(arguments)})"

    def name(self, function: str) -> str:
        if self.is_math:
            # A function that it lacks gives invalid Python, so no edit is made.
            name = _IN_TENSORFLOW.get(function, function).rpartition(".")[2]
            return f"{self.prefix}.{name}" if name not in _NOT_IN_MATH else "<unknown>"
        return f"{self.prefix}.{function if self.is_keras else _IN_TENSORFLOW.get(function, function)}"

    def dtype(self, name: str) -> str:
        """A floating dtype, as an argument."""
        return f'"{name}"' if self.is_keras or self.is_math else f"{self.prefix}.{name}"

    def size(self, of: str, axis: str) -> str:
        """The size of an axis, even if it is known only at run time."""
        return f"{self.name('shape')}({of})[{axis}]"


def library_for(code: Code, node: ast.AST, modules: Mapping[str, str]) -> Library | None:
    """The library that the user calls at `node`, or else in the function around it; `None` if the file imports none."""
    called = node.func if isinstance(node, ast.Call) else None
    if called is not None and (found := _library_of(called, modules)) is not None:
        return found
    around = [code.statement(node), *code.around(node)]
    for place in [each for each in around if each is not None]:
        heads = [call.func for call in calls_within(place)]
        libraries = [found for head in heads if (found := _library_of(head, modules)) is not None]
        if libraries:
            return next((each for each in libraries if not each.is_keras), libraries[0])
    tensorflow = [name for name, module in modules.items() if module in _TENSORFLOW]
    if tensorflow:
        return Library(tensorflow[0], is_keras=False)
    keras = [name for name, module in modules.items() if module == "keras"]
    ops = [name for name, module in modules.items() if module == "keras.ops"]
    if ops or keras:
        return Library(ops[0] if ops else f"{keras[0]}.ops", True)
    math = [name for name, module in modules.items() if module == "tensorflow.math"]
    return Library(math[0], is_keras=False, is_math=True) if math else None


def keras_of(modules: Mapping[str, str]) -> str:
    """How a file calls Keras; empty if it does not import it."""
    found = [name for name, module in modules.items() if module in ("keras", "tensorflow.keras")]
    found += [f"{name}.keras" for name, module in modules.items() if module == "tensorflow"]
    return next(iter(found), "")


_TENSORFLOW = ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2")


def _library_of(called: ast.expr, modules: Mapping[str, str]) -> Library | None:
    text = ast.unparse(called)
    root, _, rest = text.partition(".")
    module = modules.get(root, "")
    if module in _TENSORFLOW and not rest.startswith(("keras.layers", "keras.Model", "keras.Sequential", "Variable")):
        return Library(root, is_keras=False)
    if module == "keras" and rest.startswith("ops."):
        return Library(f"{root}.ops", is_keras=True)
    return Library(root, is_keras=True) if module == "keras.ops" else None
