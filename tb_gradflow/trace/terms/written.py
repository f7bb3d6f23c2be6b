"""The user's code where a loss is summed: the expression behind each term, and its name.

The graph shows which tensors are added; the user's line shows their names. Both are traversed together, starting at the
loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_gradflow.trace.source.frames import PACKAGE, Frame, frames_of
from tb_gradflow.trace.source.statements import arguments_at, statement_at
from tb_gradflow.trace.source.user_line import STEP, is_users

# Functions that sum losses on behalf of others: Keras, in its different versions.
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

# A name, or a call of something that has one.
_NAMED = re.compile(r"[\w.]+(\(.*\))?")


@dataclass(frozen=True, slots=True)
class Written:
    """An expression of the user's code, on the path from the loss to its terms.

    Attributes:
        node: The expression; None if unknown.
        statement: The statement that contains it.
        name: Its name; empty if it has none.
        is_open: Whether the line sums losses, in the user's code or in Keras on the user's behalf.
        is_users: Whether it is the user's line.
        is_first: Whether no other statement of the user has been passed on the path.
        is_running: Whether the statement adds to a running total: `loss += kl`.
        is_settled: Whether the name is that of a term in a sum that was passed before this statement: its inputs have
            other names.
        totals: The names of the running total, if this is its previous value.
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
        """The same expression, followed into the operand of a weight, a sign or a mean."""
        node = _side(self.node, op.type, slot)
        return self if node is self.node else self.at(node)

    def at(self, node: Any) -> Written:
        """A part of the same statement."""
        return replace(self, node=node, name=self.name if self.is_settled else name_of(node) or self.name)


def written_by(op: Any, so_far: Written) -> Written:
    """The user's expression for the line that created an op."""
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
    name = so_far.name or _name_behind(statement, so_far)
    return Written(
        node=_value(statement),
        statement=statement,
        name=name,
        is_users=True,
        is_first=so_far.statement is None,
        is_running=_is_running(statement),
        is_settled=bool(name),
        totals=so_far.totals,
    )


def _name_behind(statement: Any, so_far: Written) -> str:
    """The name that a summand has where it is computed, if the sum does not name it, such as `sum(losses.values())` or
    a running total that begins with it.
    """
    if so_far.statement is None or (so_far.node is not None and not so_far.totals):
        return ""
    name = _assigned_in(statement)
    return "" if name in so_far.totals else name


def _assigned_in(statement: Any) -> str:
    """The name that a statement gives to a value; empty if there is none, or more than one."""
    if isinstance(statement, ast.AnnAssign):
        return name_of(statement.target, calls=False)
    is_one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return name_of(statement.targets[0], calls=False) if is_one else ""


def parts_of(written: Written, op: Any) -> Sequence[Written]:
    """The user's expression for each input of a sum."""
    inputs = len(op.inputs)
    nodes = _summands(written.node, op.type, inputs)
    if nodes is None:
        return [replace(written, node=None, name="", is_settled=False) for _ in range(inputs)]
    own = _kept_under(written.statement)
    parts = [
        replace(
            written,
            node=node,
            name=name_of(node),
            is_settled=False,
            # What a called function adds up is not written in this statement.
            is_first=written.is_first and _is_sum(node),
            is_running=written.is_running and _is_sum(node),
        )
        for node in nodes
    ]
    # The value of `loss` before `loss += kl` is not named `loss` as a term.
    return [
        replace(part, name="", totals=own | part.totals) if part.name in own else replace(part, totals=frozenset())
        for part in parts
    ]


def is_named(part: Written) -> bool:
    """Whether the user has a name for a summand, with a weight or without, or for each value that it is a sum of."""
    return part.node is not None and _has_names(part.node)


def _is_sum(node: Any) -> bool:
    """Whether an expression adds values, with weights, signs and reductions around the sum or without."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Sub)) or _is_sum(node.left) or _is_sum(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_sum(node.operand)
    if isinstance(node, ast.Call):
        return name_of(node.func, calls=False) in _ADDING or any(_is_sum(each) for each in node.args)
    return isinstance(node, (ast.List, ast.Tuple))


_ADDING = frozenset({"add", "subtract", "add_n", "sum", "reduce_sum", "reduce_mean", "stack"})


def _has_names(node: Any) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _has_names(node.left) and _has_names(node.right)
    return bool(name_of(_unweighted(node), calls=False))


def dictionary_of(frames: Sequence[Frame]) -> Any:
    """The statement that computes a value as one of a dictionary; None if there is none."""
    statement = _users_statement(line_of(frames))
    return statement if keys_of(statement) else None


def _users_statement(frame: Frame | None) -> Any:
    """The user's statement that a frame is in; None if it is not in the user's code."""
    return statement_at(frame.file, frame.line) if frame is not None and is_users(frame.file) else None


def keys_of(statement: Any) -> Sequence[str]:
    """The keys of a dictionary that a statement creates, in their order; none if one of them is not a string."""
    value = getattr(statement, "value", None)
    keys: Sequence[Any]
    if isinstance(value, ast.Call) and name_of(value.func, calls=False) == "dict" and not value.args:
        keys = [each.arg for each in value.keywords]
    elif isinstance(value, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
    else:
        return ()
    known = [key for key in keys if isinstance(key, str)]
    return known if len(known) == len(keys) else ()


def begun_by(frames: Sequence[Frame], totals: frozenset[str]) -> str:
    """The initial value of a running total with one of these names."""
    for frame in _inside(frames):
        statement = _users_statement(frame)
        if isinstance(statement, ast.Assign) and _kept_under(statement) & totals:
            return name_of(statement.value)
    return ""


def assigned_by(frames: Sequence[Frame]) -> str:
    """The name that the statement behind an op gives its result; empty if it gives none."""
    frame = _writer(frames) or next((each for each in reversed(frames) if is_users(each.file)), None)
    if frame is not None and not is_users(frame.file):
        frame = line_of(frames)
    return _assigned_in(_users_statement(frame))


def is_unnamed_in_layer(frames: Sequence[Frame], name: str) -> bool:
    """Whether a layer adds a loss that has only a formula, or the name of an input that it is computed from, neither of
    which says anything about the loss.
    """
    for frame in reversed(_inside(frames)):
        value = getattr(_users_statement(frame), "value", None)
        if isinstance(value, ast.Call) and name_of(value.func, calls=False) == "add_loss":
            is_name = _NAMED.fullmatch(name) and name not in arguments_at(frame.file, frame.line)
            return frame.function.removeprefix("tf__") == "call" and not is_name
    return False


def line_of(frames: Sequence[Frame]) -> Frame | None:
    """The user's line behind an op; None if there is none."""
    return next((each for each in reversed(_inside(frames)) if is_users(each.file)), None)


def name_of(node: Any, *, calls: bool = True) -> str:
    """The name of an expression: a variable, an attribute, a key; the called function, or the operand of a reduction;
    otherwise the expression itself, if it is short. With `calls` false only names count.
    """
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
    """Whether a product has a number as a weight."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    return any(isinstance(side, ast.Constant) for side in sides)


def _name_inside(call: ast.Call) -> str:
    """The name of a reduction's operand: `kl` for `tf.reduce_mean(kl)`."""
    reduces = name_of(call.func, calls=False) in _REDUCING and bool(call.args)
    return name_of(_unweighted(call.args[0]), calls=False) if reduces else ""


def _name_of_call(call: ast.Call) -> str:
    """`residual` for `tf.reduce_mean(tf.square(residual))`, `critic(real)` for `tf.reduce_mean(self.critic(real))`."""
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
    """The line that called TensorFlow, or Keras's functions that only forward a call."""
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
    """Whether a statement adds to a running total."""
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
    """The expressions that are added: the outermost sum or list in an expression."""
    queue = [node] if node is not None else []
    for each in queue:  # grows during the loop
        if isinstance(each, ast.BinOp) and isinstance(each.op, (ast.Add, ast.Sub)) and count == 2:
            return [each.left, each.right]
        if isinstance(each, (ast.List, ast.Tuple)):
            if kind in ("Pack", "AddN") and len(each.elts) == count:
                return each.elts
            if kind in ("AddV2", "Add") and count == 2 and each.elts:
                # `sum([a, b])` starts with `0 + a`.
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
    """The weighted part of a product, a quotient, a negation or a reduction."""
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
    """`kl` for `beta * kl` and for `kl / 2`, as far as the text alone shows which factor is the weight."""
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
