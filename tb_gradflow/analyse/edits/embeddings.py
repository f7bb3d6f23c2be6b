"""Fixes for a model that is built of layers, in which an `Embedding` looks up the row that a `Lambda` chooses."""

from __future__ import annotations

import ast

from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.place import Place
from tb_gradflow.record.python import argument_of, is_number, name_of, reads_of, variables_of
from tb_gradflow.record.report import Edit

SOFT_ROWS = (
    "Each look-up becomes a mean of all rows under a softmax. The rows are then the kernel of a `Dense` layer: copy "
    "saved weights of the `Embedding` into it."
)

# Of the two, only the sizes and these arguments mean the same for a `Dense` layer.
_KEPT = {
    "name": "name",
    "trainable": "trainable",
    "dtype": "dtype",
    "embeddings_initializer": "kernel_initializer",
    "embeddings_regularizer": "kernel_regularizer",
    "embeddings_constraint": "kernel_constraint",
}
_SHARPNESS = "0.1"


def soft_rows(place: Place) -> Edit | None:
    """`Lambda(lambda p: argmax(p, -1))` and `Embedding(n, m)` become a sharp softmax and `Dense(m, use_bias=False)`,
    which computes the same as the `Embedding` for one-hot rows."""
    call, code, library, given = place.call, place.code, place.library, place.subject
    if call is None or library is None or given is None or name_of(call.func) not in ("argmax", "argmax_v2"):
        return None
    layer = _layer_around(code, call)
    axis = argument_of(call, 1, "axis")
    if layer is None or axis is None or ast.unparse(axis) != "-1" or _is_true(argument_of(call, -1, "keepdims")):
        return None
    following = _layer_after(code, layer)
    dense = _dense(code, following) if following is not None else None
    if following is None or dense is None:
        return None
    draft = place.draft().replace(call, library("softmax", f"{code.operand(given)} / {_SHARPNESS}", "axis=-1"))
    for each in layer.keywords:
        if each.arg == "output_shape":
            # It is the shape of the indices.
            before = layer.args[-1] if layer.args else layer.func
            draft.replace_between(code.span(before)[1], code.span(each)[1], "")
    return draft.replace(following, dense).edit()


def _is_true(value: ast.expr | None) -> bool:
    return value is not None and not (isinstance(value, ast.Constant) and not value.value)


def _layer_around(code: Code, call: ast.Call) -> ast.Call | None:
    """The `Lambda` layer whose function is this call."""
    function = code.parent(call)
    layer = code.parent(function) if isinstance(function, ast.Lambda) and function.body is call else None
    is_layer = isinstance(layer, ast.Call) and name_of(layer.func) == "Lambda" and layer.args == [function]
    return layer if isinstance(layer, ast.Call) and is_layer else None


def _layer_after(code: Code, layer: ast.Call) -> ast.Call | None:
    """The `Embedding` that is given what the layer makes: the next one of a list, or called with the result."""
    outer = code.parent(layer)
    if isinstance(outer, ast.List):
        place = outer.elts.index(layer)
        found: ast.AST | None = outer.elts[place + 1] if place + 1 < len(outer.elts) else None
    else:
        found = _called_with(code, outer) if isinstance(outer, ast.Call) and outer.func is layer else None
    is_embedding = isinstance(found, ast.Call) and name_of(found.func) == "Embedding"
    return found if isinstance(found, ast.Call) and is_embedding else None


def _called_with(code: Code, result: ast.Call) -> ast.expr | None:
    """The layer that is called with a result, in the same expression or in the next statement, if nothing else uses the
    result."""
    user = code.parent(result)
    if isinstance(user, ast.Call) and user.args == [result]:
        return user.func
    statement = code.statement(result)
    if not isinstance(statement, ast.Assign) or statement.value is not result or len(statement.targets) != 1:
        return None
    name = statement.targets[0]
    block = code.block(statement)
    later = block[block.index(statement) + 1 :]
    if not isinstance(name, ast.Name) or not later:
        return None
    uses = [read for each in later for read in reads_of(each, name.id)]
    outer = code.parent(uses[0]) if uses else None
    is_next = bool(uses) and code.statement(uses[0]) is later[0]
    if not is_next or not isinstance(outer, ast.Call) or outer.args != [uses[0]] or outer.keywords:
        return None
    taken = isinstance(later[0], ast.Assign) and name.id in variables_of(later[0])
    return outer.func if taken or len(uses) == 1 else None


def _dense(code: Code, embedding: ast.Call) -> str | None:
    """The `Dense` layer that an `Embedding` is for one-hot rows; `None` if it does more."""
    size = argument_of(embedding, 1, "output_dim")
    rest = [each for each in embedding.keywords if each.arg not in ("input_dim", "output_dim")]
    if size is None or any(each.arg not in _KEPT for each in rest) or len(embedding.args) > 2:
        return None
    if not (is_number(size) or isinstance(size, (ast.Name, ast.Attribute))):
        return None
    named = {_KEPT[str(each.arg)]: code.written(each.value) for each in rest}
    named.setdefault("kernel_initializer", '"uniform"')  # as an `Embedding` has it
    head = code.written(embedding.func).removesuffix("Embedding")
    arguments = [code.written(size), "use_bias=False", *(f"{name}={value}" for name, value in named.items())]
    # `from keras.layers import Embedding` does not import `Dense`.
    return f"{head}Dense({', '.join(arguments)})" if head else None
