"""A line of the user's that leaves TensorFlow, written so that it stays inside."""

from __future__ import annotations

import ast

_SAME = (
    "exp", "sqrt", "square", "tanh", "sinh", "cosh", "sin", "cos", "tan", "abs", "maximum", "minimum", "where",
    "matmul", "einsum", "reshape", "transpose", "stack", "cumsum", "multiply", "add", "subtract", "divide", "negative",
    "ones_like", "zeros_like", "linalg.inv", "linalg.det", "linalg.trace", "linalg.cholesky", "linalg.solve",
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

# What they are given comes back unchanged, as far as its value goes.
_CONVERSIONS = frozenset({"array", "asarray", "asanyarray", "ascontiguousarray", "float32", "float64", "copy"})
_MODULES = ("np", "numpy", "onp", "math")


def put_into(code: str) -> tuple[str, str] | None:
    """Of a tensor that a line puts into a part of an array, the array and the tensor, as they are written; null for
    any other line."""
    try:
        body = ast.parse(code.strip()).body
    except SyntaxError:
        return None
    statement = body[0] if len(body) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Subscript):
        return None
    value = statement.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "numpy":
        value = value.func.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "float" and len(value.args) == 1:
        value = value.args[0]
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    if any(ast.unparse(call.func).partition(".")[0] in (*_MODULES, "float", "int") for call in calls):
        return None
    return ast.unparse(statement.targets[0].value), ast.unparse(value)


def stays_inside(code: str) -> str | None:
    """The statement with TensorFlow's functions in the place of Python's and NumPy's; null if it cannot be told.

    `scale = np.exp(w.numpy())` becomes `scale = tf.exp(w)`.
    """
    try:
        tree = ast.parse(code.strip())
    except SyntaxError:
        return None
    written = []
    for statement in _simple_statements(tree):
        writer = _Inside()
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


class _Inside(ast.NodeTransformer):
    """Takes conversions away and translates functions.

    Attributes:
        changed: Whether anything was.
        stuck: Whether something was met that has no counterpart.
    """

    def __init__(self) -> None:
        self.changed = False
        self.stuck = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        inside = self._inside(node)
        self.changed = self.changed or inside is not node
        return inside

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
            return node.func.value
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("astype", "copy") and self.changed:
            return node.func.value
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("predict", "predict_on_batch") and node.args:
            return ast.Call(node.func.value, node.args[:1], [])
        if (name == "float" or name.endswith("convert_to_numpy")) and len(node.args) == 1:
            return node.args[0]
        if name in ("tf.constant", "tf.convert_to_tensor") and node.args and self.changed:
            return node.args[0]
        if module in _MODULES and function:
            return self._function(node, function)
        return node

    def _function(self, node: ast.Call, function: str) -> ast.expr:
        if function in _CONVERSIONS and node.args:
            return node.args[0]
        if function in _CONTRACTED and len(node.args) == 2:
            contract = ast.parse("tf.tensordot", mode="eval").body
            return ast.Call(contract, [*node.args, ast.Constant(_CONTRACTED[function])], [])
        if function not in _TENSORFLOW:
            self.stuck = True
            return node
        translated = ast.parse(f"tf.{_TENSORFLOW[function]}", mode="eval").body
        return ast.Call(translated, node.args, node.keywords)
