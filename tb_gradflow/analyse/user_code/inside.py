"""Rewrites a function of NumPy in TensorFlow, line by line, where it can."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from tb_gradflow.record.python import argument_of, calls_within, parsed

_SAME = (
    "exp", "sqrt", "square", "tanh", "sinh", "cosh", "sin", "cos", "tan", "abs", "maximum", "minimum", "where",
    "matmul", "einsum", "reshape", "transpose", "stack", "cumsum", "multiply", "add", "subtract", "divide", "negative",
    "ones_like", "zeros_like", "sort", "tile", "expand_dims",
    "squeeze", "linalg.inv", "linalg.det", "linalg.trace", "linalg.cholesky", "linalg.solve",
)  # fmt: skip

_OTHERWISE = {
    "absolute": "abs", "fabs": "abs", "power": "pow", "pow": "pow", "log": "math.log", "log1p": "math.log1p",
    "expm1": "math.expm1", "reciprocal": "math.reciprocal", "clip": "clip_by_value", "mean": "reduce_mean",
    "average": "reduce_mean", "sum": "reduce_sum", "max": "reduce_max", "amax": "reduce_max", "min": "reduce_min",
    "amin": "reduce_min", "prod": "reduce_prod", "std": "math.reduce_std", "var": "math.reduce_variance",
    "concatenate": "concat", "linalg.norm": "norm",
}  # fmt: skip

_CONTRACTED = {"dot": 1, "outer": 0}
_TENSORFLOW = {**{name: name for name in _SAME}, **_OTHERWISE}

_AS_IN_NUMPY = frozenset(
    {
        "diff", "cumprod", "inner", "vdot", "kron", "cross", "triu", "tril", "moveaxis", "swapaxes", "ravel", "flip",
        "fliplr", "flipud", "roll", "rot90", "repeat", "take", "logaddexp", "log2", "log10", "exp2", "hypot", "arctan2",
        "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sinc", "deg2rad", "rad2deg", "vstack", "hstack",
        "dstack", "append", "diag", "diagonal", "nanmean", "nansum", "broadcast_to", "pad", "real", "conj", "cbrt",
        "float_power", "atleast_1d", "atleast_2d", "ptp", "trace", "true_divide",
    }
)  # fmt: skip
"""Functions that `tf.experimental.numpy` has with NumPy's arguments, and that pass a gradient."""

_OF_SEVERAL = frozenset(
    {"append", "cross", "kron", "inner", "vdot", "vstack", "hstack", "dstack", "logaddexp", "hypot", "arctan2"}
)
"""Those that take several values. With a list or an array of NumPy, which both are float64, the result is too."""

_METHODS = {
    "mean": "reduce_mean", "sum": "reduce_sum", "max": "reduce_max", "min": "reduce_min", "std": "math.reduce_std",
    "var": "math.reduce_variance", "prod": "reduce_prod", "clip": "clip_by_value",
    "reshape": "reshape", "cumsum": "cumsum",
}  # fmt: skip
"""Methods of an array that a tensor does not have, and what they become."""

# Arguments that both have. A `ddof` or a `dtype` TensorFlow does not know.
_KEYWORDS = frozenset({"axis", "keepdims", "ord"})

_OF_ARRAYS = frozenset(name for name in dir(np.ndarray) if not name.startswith("_")) - {
    "shape", "dtype", "ndim", "device",
}  # fmt: skip
"""All attributes of an array that a tensor does not have."""

# They return the value that they are given.
_CONVERSIONS = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray", "float32", "float64", "copy"})

_MODULES = ("np", "numpy", "onp", "math")

_WHOLE = frozenset({"int", "bool", "range", "round", "divmod", "math.floor", "math.ceil"})
"""Python functions that convert a tensor to a Python number."""


def put_into(code: str) -> tuple[str, str] | None:
    """The array and the tensor, as written, if a line stores a tensor in a part of an array; None for any other
    line."""
    tree = parsed(code.strip())
    statement = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
        return None
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "numpy":
        value = value.func.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "float" and len(value.args) == 1:
        value = value.args[0]
    if any(ast.unparse(call.func).partition(".")[0] in (*_MODULES, "float", "int") for call in calls_within(value)):
        return None
    return ast.unparse(statement.targets[0].value), ast.unparse(value)


def stays_inside(code: str) -> str | None:
    """The statement with TensorFlow's functions instead of Python's and NumPy's; None if it cannot be determined.

    `scale = np.exp(w.numpy())` becomes `scale = tf.exp(w)`.
    """
    tree = parsed(code.strip())
    written = []
    for statement in _simple_statements(tree) if tree is not None else ():
        writer = Inside()
        text = ast.unparse(writer.visit(statement))
        if writer.stuck:
            return None
        if writer.changed:
            written.append(text)
    return "; ".join(written) or None


def _simple_statements(tree: ast.AST) -> list[ast.stmt]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not any(isinstance(child, ast.stmt) for child in ast.iter_child_nodes(node))
    ]


class Inside(ast.NodeTransformer):
    """Removes conversions and translates functions.

    Attributes:
        changed: Whether anything was.
        stuck: Whether something was met that has no counterpart.
    """

    def __init__(
        self, tensorflow: str = "tf", tensors: Collection[str] | None = None, lists: Collection[str] = ()
    ) -> None:
        """`tensorflow` is what the file calls it. With `tensors`, the names that stand for what was outside before, a
        function that is given none of them is left to NumPy; `lists` are those of them that are lists."""
        self.changed = False
        self.stuck = False
        self._tensorflow = tensorflow
        self._tensors = tensors
        self._lists = lists
        self._made: list[ast.expr] = []
        self._called: list[ast.expr] = []

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in _OF_ARRAYS or any(node is each for each in self._called):
            return node
        if node.attr == "T" and self._is_tensor(node.value):
            self._made.append(self._translated("transpose", [node.value]))
            return self._made[-1]
        self.stuck = self.stuck or self._is_tensor(node.value) or self._is_of_a_function(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self._called.append(node.func)
        before = self.changed
        self.generic_visit(node)
        is_leaky = ast.unparse(node.func).endswith("nn.leaky_relu")
        inside = self._leaky(node) if is_leaky and self.changed != before else self._inside(node)
        if inside is not node:
            self.changed = True
            self._made.append(inside)
        return inside

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._of_each(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._of_each(node)

    def _of_each(self, node: ast.ListComp | ast.GeneratorExp) -> ast.AST:
        """Of a list of tensors, each element is one."""
        for each in node.generators:
            self.visit(each)
            if self._tensors is not None and isinstance(each.target, ast.Name) and self._is_tensor(each.iter):
                self._tensors = {*self._tensors, each.target.id}
        node.elt = self.visit(node.elt)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        # A comparison has no derivative inside either.
        before = self.changed
        self.generic_visit(node)
        self.stuck = self.stuck or self.changed != before
        return node

    def _inside(self, node: ast.Call) -> ast.expr:
        name = ast.unparse(node.func)
        module, _, function = name.partition(".")
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "item", "tolist") and not node.args:
            self.stuck = self.stuck or (node.func.attr != "numpy" and self._is_of_a_function(node.func.value))
            return node.func.value
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in ("astype", "copy")
            and (self.changed or self._is_tensor(node.func.value))
        ):
            return node.func.value
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get_weights" and not node.args:
            return ast.Attribute(node.func.value, "weights", ast.Load())  # the same ones, in this order
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("predict", "predict_on_batch") and node.args:
            return ast.Call(node.func.value, node.args[:1], [])
        if name == "float" and self._tensors is not None and not self._is_given_a_tensor(node):
            return node
        if (name == "float" or name.endswith("convert_to_numpy")) and len(node.args) == 1:
            return node.args[0]
        if name in _WHOLE and self._tensors is not None and self._is_given_a_tensor(node):
            # Python uses the result to count or to decide: that cannot stay in TensorFlow.
            self.stuck = True
            return node
        constant = name in (f"{self._tensorflow}.constant", f"{self._tensorflow}.convert_to_tensor")
        constant = constant and bool(node.args) and not self._is_a_list(node.args[0])
        if constant and (self.changed or (self._tensors is not None and self._is_given_a_tensor(node))):
            return node.args[0]
        if module in _MODULES and function and self._is_given_a_tensor(node):
            return self._function(node, function)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_ARRAYS:
            return self._method(node, node.func)
        return node

    def _method(self, node: ast.Call, of: ast.Attribute) -> ast.expr:
        """A method of an array, which a tensor does not have."""
        is_known = of.attr in _METHODS or of.attr in _CONTRACTED
        if self._is_of_a_function(of.value) or (not is_known and self._is_tensor(of.value)):
            self.stuck = True
        if self.stuck or not is_known or _is_of_a_class(of.value) or not self._holds_a_tensor(of):
            return node
        if of.attr in _CONTRACTED:
            return self._contracted(of.attr, [of.value, *node.args])
        args: list[ast.expr] = node.args
        if of.attr == "reshape" and (len(args) > 1 or any(isinstance(each, ast.Starred) for each in args)):
            args = [ast.List(args, ast.Load())]
        return self._translated(_METHODS[of.attr], [of.value, *args], node.keywords)

    def _contracted(self, function: str, args: list[ast.expr]) -> ast.expr:
        return self._translated("tensordot", [*args, ast.Constant(_CONTRACTED[function])])

    def _translated(self, function: str, args: list[ast.expr], keywords: Sequence[ast.keyword] = ()) -> ast.expr:
        self.stuck = self.stuck or any(each.arg not in _KEYWORDS for each in keywords)
        return ast.Call(ast.parse(f"{self._tensorflow}.{function}", mode="eval").body, args, list(keywords))

    def _is_of_a_function(self, value: ast.expr) -> bool:
        """Whether a function of the user's own returned an array of it: its lines are NumPy's."""
        if not isinstance(value, ast.Call) or self._is_tensor(value):
            return False
        *around, name = ast.unparse(value.func).split(".")
        is_known = self._tensorflow in around or name == "abs" or _is_of_a_class(value)
        return not is_known and any(self._is_tensor(each) for each in ast.walk(value))

    def _leaky(self, node: ast.Call) -> ast.expr:
        """A leaky ReLU written out, because the kernel accepts only a Python number as its slope."""
        values, slope = argument_of(node, 0, "features"), argument_of(node, 1, "alpha")
        if values is None or slope is None:
            return node
        written = f"{self._tensorflow}.where(values > 0, values, slope * values)"
        names = {"values": values, "slope": slope}
        filled: ast.expr = Filled(names).visit(ast.parse(written, mode="eval").body)
        return filled

    def _holds_a_tensor(self, method: ast.expr) -> bool:
        return isinstance(method, ast.Attribute) and any(self._is_tensor(each) for each in ast.walk(method.value))

    def _is_given_a_tensor(self, node: ast.Call) -> bool:
        return self._tensors is None or any(self._is_tensor(each) for each in ast.walk(node))

    def _is_tensor(self, node: ast.AST) -> bool:
        if any(node is each for each in self._made):
            return True
        if isinstance(node, ast.BinOp):
            return self._is_tensor(node.left) or self._is_tensor(node.right)
        if isinstance(node, ast.IfExp):
            return self._is_tensor(node.body) or self._is_tensor(node.orelse)
        if isinstance(node, ast.UnaryOp):
            return self._is_tensor(node.operand)
        if isinstance(node, ast.Subscript):
            return self._is_tensor(node.value)
        return isinstance(node, ast.Name) and self._tensors is not None and node.id in self._tensors

    def _function(self, node: ast.Call, function: str) -> ast.expr:
        if function in _CONVERSIONS and node.args:
            return self._stacked(node.args[0])
        if function in _CONTRACTED and len(node.args) == 2:
            return self._contracted(function, node.args)
        if function in _AS_IN_NUMPY:
            library = ast.parse(f"{self._tensorflow}.experimental.numpy.{function}", mode="eval").body
            self.stuck = self.stuck or (function in _OF_SEVERAL and self._changes_type(function, node))
            needs_mode = function == "pad" and argument_of(node, 2, "mode") is None
            mode = [ast.keyword("mode", ast.Constant("constant"))] if needs_mode else []
            return ast.Call(library, node.args, [*node.keywords, *mode])
        if function not in _TENSORFLOW:
            self.stuck = True
            return node
        return self._translated(_TENSORFLOW[function], node.args, node.keywords)

    def _changes_type(self, function: str, node: ast.Call) -> bool:
        """Whether the result is of another type than the tensors that a function is given, or may be."""
        values = node.args[0].elts if node.args and isinstance(node.args[0], (ast.List, ast.Tuple)) else node.args
        return any(
            isinstance(each, (ast.List, ast.Tuple))
            or (function == "hypot" and isinstance(each, ast.Constant))
            or not (self._tensors is None or isinstance(each, ast.Constant) or self._is_tensor(each))
            for each in values
        )

    def _stacked(self, given: ast.expr) -> ast.expr:
        """The elements of an array; a list of tensors is stacked."""
        return self._translated("stack", [given]) if self._is_a_list(given) else given

    def _is_a_list(self, node: ast.expr) -> bool:
        return isinstance(node, (ast.List, ast.ListComp)) or (isinstance(node, ast.Name) and node.id in self._lists)


def _is_of_a_class(value: ast.expr) -> bool:
    """Whether it is an object that a class, or a function of it, has made: what its methods do is its own."""
    called = ast.unparse(value.func).split(".") if isinstance(value, ast.Call) else ()
    return any(part[:1].isupper() for part in called)


class Filled(ast.NodeTransformer):
    """Replaces names with expressions."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._names.get(node.id, node)
