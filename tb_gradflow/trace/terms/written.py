"""What the user wrote where a loss is added up: the expression behind each term, and its name.

The graph says which tensors are added; their line says what they are called. Both are walked together, from the loss
back.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_gradflow.trace.source.frames import PACKAGE, Frame, frames_of
from tb_gradflow.trace.source.statements import statement_at
from tb_gradflow.trace.source.user_line import STEP, is_users

# Who adds up losses for others: Keras, in the versions that there are.
_SUMMING = (
    "/trainers/trainer.py",
    "/trainers/compile_utils.py",
    "/tensorflow/trainer.py",
    "/engine/training.py",
    "/engine/compile_utils.py",
)
_PASSING = ("/tensorflow/", "/keras/src/ops/", "/keras/src/backend/", "/keras/src/utils/", "/tf_keras/src/utils/")
_REDUCING = frozenset(
    {"reduce_mean", "reduce_sum", "mean", "sum", "cast", "identity", "squeeze", "reshape", "float", "add_n"}
    | {"compute_average_loss", "abs"}
)
_WEIGHING = frozenset({"multiply", "divide", "divide_no_nan", "truediv"})
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Written:
    """An expression of the user's, on the way from the loss to its terms.

    Attributes:
        node: The expression; null where none is known.
        statement: The statement that it is a part of.
        name: What they call it; empty if they do not.
        is_open: Whether whoever wrote the line adds up losses: the user, or Keras for them.
        is_users: Whether it is the user's line.
        is_first: Whether no other statement of theirs has been met on the way.
        is_running: Whether the statement adds to what it has: `loss += kl`.
        is_settled: Whether the name is that of a term in a sum that was met before this statement: what goes into it
            there is called otherwise.
        totals: What a running total is called, where this is what it was before.
    """

    node: Any = None
    statement: Any = None
    name: str = ""
    is_open: bool = True
    is_users: bool = False
    is_first: bool = True
    is_running: bool = False
    is_settled: bool = False
    totals: frozenset[str] = frozenset()

    def through(self, op: Any, slot: int) -> Written:
        """The same on the way into what a weight, a sign or a mean is of."""
        node = _side(self.node, op.type, slot)
        return self if node is self.node else self.at(node)

    def at(self, node: Any) -> Written:
        """A part of the same statement."""
        return replace(self, node=node, name=self.name if self.is_settled else name_of(node) or self.name)


def written_by(op: Any, so_far: Written) -> Written:
    """What the line says that made an op."""
    frame = _writer(frames_of(op.traceback))
    if frame is None:
        return replace(so_far, is_open=True, is_users=False, node=None, statement=None)
    if not is_users(frame.file):
        is_open = frame.file.replace("\\", "/").endswith(_SUMMING)
        return replace(so_far, is_open=is_open, is_users=False, node=None, statement=None)
    statement = statement_at(frame.file, frame.line)
    if statement is None:
        return replace(so_far, is_open=True, is_users=True, node=None, statement=None)
    if statement is so_far.statement and so_far.node is not None:
        return so_far
    return Written(
        node=_value(statement),
        statement=statement,
        name=so_far.name,
        is_users=True,
        is_first=so_far.statement is None,
        is_running=_is_running(statement),
        is_settled=bool(so_far.name),
        totals=so_far.totals,
    )


def parts_of(written: Written, op: Any) -> Sequence[Written]:
    """What the user wrote for each input of a sum."""
    inputs = len(op.inputs)
    nodes = _summands(written.node, op.type, inputs)
    if nodes is None:
        return [replace(written, node=None, name="", is_settled=False) for _ in range(inputs)]
    own = _kept_under(written.statement)
    parts = [replace(written, node=node, name=name_of(node), is_settled=False) for node in nodes]
    # What `loss` was before `loss += kl` is no name for a term of it.
    return [
        replace(part, name="", totals=own | part.totals) if part.name in own else replace(part, totals=frozenset())
        for part in parts
    ]


def is_named(part: Written) -> bool:
    """Whether the user calls a summand by a name, with a weight or without."""
    return bool(name_of(_unweighted(part.node), calls=False)) if part.node is not None else False


def begun_by(frames: Sequence[Frame], totals: frozenset[str]) -> str:
    """What a running total of one of these names was begun with."""
    for frame in _inside(frames):
        statement = statement_at(frame.file, frame.line) if is_users(frame.file) else None
        if isinstance(statement, ast.Assign) and _kept_under(statement) & totals:
            return name_of(statement.value)
    return ""


def assigned_by(frames: Sequence[Frame]) -> str:
    """The name that the statement behind an op gives its result; the function that it calls where it gives none."""
    frame = _writer(frames) or next((each for each in reversed(frames) if is_users(each.file)), None)
    if frame is None or not is_users(frame.file):
        frame = next((each for each in reversed(_inside(frames)) if is_users(each.file)), None)
    statement = statement_at(frame.file, frame.line) if frame is not None else None
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if len(targets) == 1 and (name := name_of(targets[0], calls=False)):
            return name
    return ""


def line_of(frames: Sequence[Frame]) -> Frame | None:
    """The user's line behind an op; null if there is none."""
    return next((each for each in reversed(_inside(frames)) if is_users(each.file)), None)


def name_of(node: Any, *, calls: bool = True) -> str:
    """What an expression is called: a variable, an attribute, a key; the function that is called, or what is added up
    by one; else the expression itself, if it is short. With `calls` false nothing but names count."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        key = node.slice
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else _short(node)
    if isinstance(node, ast.Call):
        return _name_of_call(node) if calls else _name_inside(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return name_of(node.operand, calls=calls)
    if calls and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return name_of(node.left)
    if calls and (inner := _unweighted(node)) is not node and _is_number(node):
        return name_of(inner)
    return _short(node) if calls and isinstance(node, ast.expr) and not isinstance(node, ast.Constant) else ""


def _is_number(node: Any) -> bool:
    """Whether a product has a number for a weight."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(isinstance(side, ast.Constant) for side in sides)


def _name_inside(call: ast.Call) -> str:
    """The name of what is added up: `kl` of `tf.reduce_mean(kl)`."""
    reduces = name_of(call.func, calls=False) in _REDUCING and bool(call.args)
    return name_of(_unweighted(call.args[0]), calls=False) if reduces else ""


def _name_of_call(call: ast.Call) -> str:
    """`residual` of `tf.reduce_mean(tf.square(residual))`, `critic(real)` of `tf.reduce_mean(self.critic(real))`."""
    called = name_of(call.func)
    if called in _REDUCING | {"square"} and call.args:
        return name_of(_unweighted(call.args[0])) or called
    if not called.isidentifier():
        return _short(call)
    only = call.args[0] if len(call.args) == 1 and not call.keywords else None
    return f"{called}({only.id})" if isinstance(only, ast.Name) else called


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _inside(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames of the user's step, without the recorder's own."""
    starts = [place for place, frame in enumerate(frames) if frame.file == STEP]
    inside = frames[starts[-1] + 1 :] if starts else frames
    return [frame for frame in inside if is_users(frame.file) or not frame.file.startswith(PACKAGE)]


def _writer(frames: Sequence[Frame]) -> Frame | None:
    """The line that called TensorFlow, or Keras's functions that only pass a call on."""
    for frame in reversed(_inside(frames)):
        if is_users(frame.file) or not any(part in frame.file.replace("\\", "/") for part in _PASSING):
            return frame
        if frame.file.replace("\\", "/").endswith(_SUMMING):
            return frame
    return None


def _value(statement: Any) -> Any:
    if isinstance(statement, ast.AugAssign):
        return ast.BinOp(statement.target, statement.op, statement.value)
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call) and name_of(value.func) == "add_loss" and value.args:
        return value.args[0]
    return value


def _is_running(statement: Any) -> bool:
    """Whether a statement adds to what it has."""
    if isinstance(statement, ast.AugAssign):
        return True
    own = _kept_under(statement)
    return bool(own) and any(isinstance(node, ast.Name) and node.id in own for node in ast.walk(statement.value))


def _kept_under(statement: Any) -> frozenset[str]:
    targets: Sequence[ast.expr]
    if isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        return frozenset()
    return frozenset(name for target in targets if (name := name_of(target, calls=False)))


def _summands(node: Any, kind: str, count: int) -> Sequence[Any] | None:
    """The expressions that are added up: the outermost sum or list in one."""
    queue = [node] if node is not None else []
    for each in queue:  # grows while it is walked
        if isinstance(each, ast.BinOp) and isinstance(each.op, (ast.Add, ast.Sub)) and count == 2:
            return [each.left, each.right]
        if isinstance(each, (ast.List, ast.Tuple)):
            if kind in ("Pack", "AddN") and len(each.elts) == count:
                return each.elts
            if kind in ("AddV2", "Add") and count == 2 and each.elts:
                # `sum([a, b])` begins with `0 + a`.
                rest = ast.List(each.elts[:-1], ast.Load())
                return [rest, each.elts[-1]]
        if isinstance(each, ast.Call) and len(each.args) == count and name_of(each.func) in ("add", "subtract"):
            return each.args
        if isinstance(each, ast.Call):
            queue.extend(each.args[:1])
        elif isinstance(each, ast.BinOp):
            queue.extend([each.left, each.right])
        elif isinstance(each, ast.UnaryOp):
            queue.append(each.operand)
    return None


def _side(node: Any, kind: str, slot: int) -> Any:
    """The part of a product, a quotient, a negation or a reduction that is weighted."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)) and kind in ("Mul", "RealDiv"):
        return node.right if slot == 1 else node.left
    if isinstance(node, ast.UnaryOp) and kind == "Neg":
        return node.operand
    if isinstance(node, ast.Call) and name_of(node.func) in _WEIGHING and kind in ("Mul", "RealDiv", "DivNoNan"):
        return node.args[slot] if len(node.args) == 2 else node
    reduces = isinstance(node, ast.Call) and name_of(node.func) in _REDUCING and bool(node.args)
    if reduces and kind in ("Mean", "Sum", "Cast", "Identity", "Squeeze", "Reshape"):
        return node.args[0]
    return node


def _unweighted(node: Any) -> Any:
    """`kl` of `beta * kl` and of `kl / 2`, as far as the text alone says which of them is the weight."""
    if isinstance(node, ast.UnaryOp):
        return _unweighted(node.operand)
    if isinstance(node, ast.Call) and name_of(node.func) in _WEIGHING and len(node.args) == 2:
        is_first = isinstance(node.args[1], ast.Constant) or name_of(node.func) != "multiply"
        return _unweighted(node.args[0 if is_first else 1])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        if isinstance(node.op, ast.Div) or isinstance(node.right, ast.Constant):
            return _unweighted(node.left)
        return _unweighted(node.right)
    return node
