"""Fixes that change an argument: an activation, an axis, a flag."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.edits.straight_through import straight_through
from tb_gradflow.analyse.evidence.stops import takes_back_its_value
from tb_gradflow.analyse.graph.op_sets import limits_exchanged
from tb_gradflow.analyse.graph.probabilities import probabilities_before
from tb_gradflow.analyse.graph.samples import sample_in
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.code import Code, program_of
from tb_gradflow.analyse.user_code.definitions import definition_of_layer, layers_of_group
from tb_gradflow.analyse.user_code.draft import Draft, is_plain
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group, layer_of, short
from tb_gradflow.record.python import argument_of, name_of
from tb_gradflow.record.report import Edit

_LEAKY = "Inactive units still pass a fifth of the gradient."


def leaky(group: Group) -> Iterator[Candidate]:
    """A leaky ReLU, which passes some gradient where it is inactive."""
    place = place_of_group(group)
    call = place.call if place is not None else None
    if place is not None and call is not None and place.library is not None:
        if name_of(call.func) == "relu" and len(call.args) == 1 and not call.keywords:
            leaking = place.library("leaky_relu", place.code.written(call.args[0]))
            yield from candidates(_LEAKY, place.draft().replace(call, leaking).edit())
            return
        if name_of(call.func) == "maximum" and place.subject is not None:
            leaking = place.library("leaky_relu", place.code.written(place.subject))
            yield from candidates(_LEAKY, place.draft().replace(call, leaking).edit())
            return
    yield from candidates(_LEAKY, _other_activation(group, ("relu",), "leaky_relu"))


def not_saturating(group: Group) -> Iterator[Candidate]:
    """A ReLU instead of the sigmoids or tanhs that make the gradient vanish."""
    if group.verdict.severity == "info":
        return  # nothing is to be changed
    yield from candidates(
        "This is a different network: train it from scratch, with He initialisation.",
        _other_activation(group, ("sigmoid", "tanh"), "relu", everywhere=True),
    )


def curved(group: Group) -> Iterator[Candidate]:
    """A smooth function instead of a ReLU, if its second derivative is needed."""
    if group.op is None or "Relu" not in group.op.type:
        return
    cost = "This is a different network: train it from scratch."
    # A single remaining ReLU is enough to make the second derivative behind it zero.
    edit = _everywhere(group, "relu", "softplus")
    yield from candidates(cost, edit or _other_activation(group, ("relu", "leaky_relu"), "softplus"))


def _everywhere(group: Group, old: str, new: str) -> Edit | None:
    """Replaces a function of TensorFlow or Keras, everywhere in the only passage that names it."""
    found = [
        (code, node)
        for code in program_of(group.trace).passages
        for node in ast.walk(code.tree)
        if _is_function(node, old)
    ]
    codes = {id(code): code for code, _ in found}
    if len(codes) != 1:
        return None
    draft = Draft(found[0][0])
    for code, node in found:
        written = code.written(node)
        draft.replace(node, f'"{new}"' if isinstance(node, ast.Constant) else written[: -len(old)] + new)
    return draft.edit()


def _is_function(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name
    return isinstance(node, ast.Constant) and node.value == name


def wider_range(group: Group) -> Iterator[Candidate]:
    """bfloat16 instead of float16: it has the range of float32."""
    cost = "bfloat16 has three fewer bits of precision than float16, and the range of float32."
    found = [
        (code, node)
        for code in program_of(group.trace).passages
        for node in ast.walk(code.tree)
        if (isinstance(node, ast.Constant) and node.value in _HALVES)
        or (isinstance(node, ast.Attribute) and node.attr in _HALVES)
    ]
    # NumPy has no bfloat16.
    if len({id(code) for code, _ in found}) != 1 or any(_is_of_numpy(node) for _, node in found):
        return
    draft = Draft(found[0][0])
    for code, node in found:
        draft.replace(node, code.written(node).replace("float16", "bfloat16").replace("half", "bfloat16"))
    yield from candidates(cost, draft.edit())


_HALVES = ("float16", "half", "mixed_float16")


def _is_of_numpy(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node).partition(".")[0] in ("np", "numpy")


_OF_CLASSES = ("categorical_crossentropy", "sparse_categorical_crossentropy")


def of_two_classes(group: Group) -> Iterator[Candidate]:
    """A binary loss, if a loss for several classes gets a single one."""
    shape = _shape_of_culprit(group)
    if shape is not None and len(shape) > 2:
        return
    found = [
        (code, given)
        for code in program_of(group.trace).passages
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Call) and name_of(node.func) == "compile"
        if isinstance(given := argument_of(node, 1, "loss"), ast.Constant) and given.value in _OF_CLASSES
    ]
    if len(found) != 1:
        return
    code, given = found[0]
    draft = Draft(code).replace(given, '"binary_crossentropy"')
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Call) and name_of(node.func) == "Dense" and _has_one_unit(node):
            activation = _activation_in(node)
            if activation is not None and _activation(activation) == "softmax":
                draft.replace(activation, '"sigmoid"')
    cost = "The output becomes the probability of one of two classes, and the labels have to be 0 and 1."
    yield from candidates(cost, draft.edit())


def _has_one_unit(call: ast.Call) -> bool:
    units = argument_of(call, 0, "units")
    return isinstance(units, ast.Constant) and units.value == 1


def _other_activation(group: Group, old: tuple[str, ...], new: str, *, everywhere: bool = False) -> Edit | None:
    own = layer_of(group.trace, group.culprit) if group.culprit >= 0 else ""
    program = program_of(group.trace).passages
    for name in [own] if own else layers_of_group(group):
        layer = definition_of_layer(program, group.trace, name)
        given = _activation_in(layer.call) if layer is not None else None
        if layer is not None and given is not None and _activation(given) in old:
            return Draft(layer.code).replace(given, f'"{new}"').edit()
    if everywhere:
        # Layers that a loop creates have no separate names in the file.
        found = [
            (code, given)
            for code in program
            for node in ast.walk(code.tree)
            if isinstance(node, ast.Call) and (given := _activation_in(node)) is not None
            if _activation(given) in old and _is_in_loop(code, node)
        ]
        if len(found) == 1:
            return Draft(found[0][0]).replace(found[0][1], f'"{new}"').edit()
    return None


_ACTIVATION_AT = {"Dense": 1, "Activation": 0, "LSTM": 1, "GRU": 1, "SimpleRNN": 1}
"""Which positional argument of a layer its activation is; programs name it in other layers."""


def _activation_in(call: ast.Call) -> ast.expr | None:
    return argument_of(call, _ACTIVATION_AT.get(name_of(call.func), -1), "activation")


def _activation(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else name_of(node)


def _is_in_loop(code: Code, node: ast.AST) -> bool:
    return any(isinstance(each, (ast.For, ast.ListComp, ast.GeneratorExp, ast.While)) for each in code.around(node))


def logits_instead(group: Group) -> Iterator[Candidate]:
    """For a cross-entropy of logits that gets probabilities: what the softmax is computed from, or a last layer without
    a softmax."""
    made = probabilities_before(group.suspect.topology, group.culprit)
    yield from candidates("", _argument_of_softmax(group, made))
    cost = "The model then returns logits: use `tf.nn.{}` where you need probabilities."
    place = place_of_group(group, made)
    if place is not None and place.call is not None and place.subject is not None:
        function = name_of(place.call.func)
        if function in _TO_PROBABILITIES and isinstance(place.statement, ast.Return):
            draft = place.draft().replace(place.call, place.code.written(place.subject))
            yield from candidates(cost.format(function), draft.edit())
    layer = definition_of_layer(program_of(group.trace).passages, group.trace, layer_of(group.trace, made))
    if layer is None:
        return
    given = _activation_in(layer.call)
    if given is not None and _activation(given) in _TO_PROBABILITIES:
        yield from candidates(cost.format(_activation(given)), Draft(layer.code).replace(given, "None").edit())


def softmax_instead(group: Group) -> Iterator[Candidate]:
    """A softmax as the activation of the last layer."""
    cost = "The results of a row add up to one: a row has one class."
    layer = definition_of_layer(program_of(group.trace).passages, group.trace, layer_of(group.trace, group.culprit))
    if layer is None:
        return
    given = _activation_in(layer.call)
    if given is not None and _activation(given) in _NO_SOFTMAX:
        yield from candidates(cost, Draft(layer.code).replace(given, '"softmax"').edit())


_NO_SOFTMAX = ("sigmoid", "relu", "relu6", "elu", "selu", "tanh", "softplus")


def with_activations(group: Group) -> Iterator[Candidate]:
    """A ReLU in all dense layers of the variables but the last."""
    program, names = program_of(group.trace).passages, list(layers_of_group(group))
    last = layer_of(group.trace, group.culprit)
    found = [definition_of_layer(program, group.trace, name) for name in names if name != last]
    layers = [each for each in found if each is not None and name_of(each.call.func) == "Dense"]
    if not layers or any(each.code is not layers[0].code for each in layers):
        return
    draft = Draft(layers[0].code)
    for each in layers:
        given = _activation_in(each.call)
        if given is not None:
            draft.replace(given, '"relu"')
        else:
            _, end = each.code.span(each.call)
            draft.replace_between(end - 1, end - 1, ', activation="relu"')
    yield from candidates("This is a different model: train it from scratch.", draft.edit())


def without_activation(group: Group) -> Iterator[Candidate]:
    """The results of a layer, or the argument of a call, without the activation that limits them."""
    cost = "The results have no limits any more, and may be ones that make no sense."
    place = place_of_group(group)
    if place is not None and place.call is not None and place.subject is not None:
        is_whole = isinstance(place.statement, (ast.Return, ast.Assign)) and place.statement.value is place.call
        if is_whole and name_of(place.call.func) in _WITH_LIMITS:
            yield from candidates(cost, place.draft().replace(place.call, place.code.written(place.subject)).edit())
        return
    layer = definition_of_layer(program_of(group.trace).passages, group.trace, layer_of(group.trace, group.culprit))
    given = _activation_in(layer.call) if layer is not None else None
    if layer is not None and given is not None and _activation(given) in _WITH_LIMITS:
        yield from candidates(cost, Draft(layer.code).replace(given, "None").edit())


_WITH_LIMITS = ("sigmoid", "softmax", "tanh", "softsign", "relu", "relu6", "softplus", "elu")


def _is_assigned_once(place: Place, name: ast.expr) -> bool:
    written = place.code.written(name)
    stores = (each for each in ast.walk(place.code.tree) if isinstance(getattr(each, "ctx", None), ast.Store))
    return sum(place.code.written(each) == written for each in stores) == 1


_TO_PROBABILITIES = ("softmax", "sigmoid")


def _argument_of_softmax(group: Group, made: int) -> Edit | None:
    """If one function computes the probabilities and passes them to the loss."""
    loss, place = place_of_group(group), place_of_group(group, made)
    if loss is None or place is None or place.call is None or place.subject is None or loss.code is not place.code:
        return None
    given = loss.argument(1, "logits")
    if given is None or name_of(place.call.func) not in _TO_PROBABILITIES:
        return None
    if given is not place.call:
        statement = place.statement
        if not isinstance(statement, ast.Assign) or statement.value is not place.call:
            return None
        if [place.code.written(each) for each in statement.targets] != [place.code.written(given)]:
            return None
        if place.code.scope(place.call) is not place.code.scope(given) or not _is_assigned_once(place, given):
            return None
        draft = place.draft()
        value = draft.computed_before(place.subject, "logits", "scores")
        if not value:
            return None
        if not is_plain(place.subject):
            draft.replace(place.subject, value)
        return draft.replace(given, value).edit()
    return place.draft().replace(given, place.code.written(place.subject)).edit()


def other_axis(group: Group) -> Iterator[Candidate]:
    """For a softmax over an axis of size one: over the axis before it, or a sigmoid if there is no other."""
    place = place_of_group(group)
    shape = _shape_of_culprit(group)
    if shape is None:
        return
    call = place.call if place is not None else None
    if place is not None and call is not None and name_of(call.func) == "softmax":
        yield from candidates(_cost_of_axis(shape), _with_axis(group, place.code, call, shape, place))
        return
    name = layer_of(group.trace, group.culprit)
    layer = definition_of_layer(program_of(group.trace).passages, group.trace, name) if name else None
    if layer is None:
        if len(shape) == 2:
            yield from candidates(_ONE_OF_TWO, _single_unit(group))
        return
    if name_of(layer.call.func) == "Softmax":
        yield from candidates(_cost_of_axis(shape), _with_axis(group, layer.code, layer.call, shape, None))
        return
    given = _activation_in(layer.call)
    # A dense layer has no other softmax than its activation, which may be read from a configuration.
    is_read = name_of(layer.call.func) == "Dense" and not isinstance(given, ast.Constant)
    if given is not None and (_activation(given) == "softmax" or is_read) and len(shape) == 2:
        yield from candidates(_ONE_OF_TWO, Draft(layer.code).replace(given, '"sigmoid"').edit())


_ONE_OF_TWO = "The output becomes the probability of one of two classes, and the loss has to be `binary_crossentropy`."


def _single_unit(group: Group) -> Edit | None:
    """For a layer without a name: a sigmoid in the only layer of the file that has one unit and a softmax."""
    found = [
        (code, activation)
        for code in program_of(group.trace).passages
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Call) and name_of(node.func) == "Dense" and _has_one_unit(node)
        if (activation := _activation_in(node)) is not None and _activation(activation) == "softmax"
    ]
    return Draft(found[0][0]).replace(found[0][1], '"sigmoid"').edit() if len(found) == 1 else None


def _cost_of_axis(shape: tuple[int, ...]) -> str:
    return "The weights sum to one over that axis." if len(shape) > 2 else "The outputs no longer sum to one."


def axis_of_batch(group: Group, shape: Sequence[int | None]) -> int:
    """The axis of the examples in what a softmax gets: the first, or the second if that is the only one of unknown size
    and the first lists the tensors of a `stack`."""
    unknown = [axis for axis, size in enumerate(shape) if size is None or size < 0]
    ops = group.trace.ops
    given = next((ops[edge.op] for edge in (group.op.inputs if group.op is not None else ()) if edge.op >= 0), None)
    is_list = given is not None and given.type == "Pack" and shape[0] == len(given.inputs)
    return 1 if unknown == [1] and is_list else 0


def _with_axis(group: Group, code: Code, call: ast.Call, shape: tuple[int, ...], place: Place | None) -> Edit | None:
    batch = axis_of_batch(group, shape)
    is_shared = place is not None and _serves_others(group)
    longer = [axis for axis, size in enumerate(shape) if axis != batch and size != 1]
    draft = Draft(code)
    if len(shape) > 2 and longer:
        axis = str(longer[-1])
        given = argument_of(call, 1 if place is not None else 0, "axis")
        if given is not None:
            said = _said_by_caller(group, code, given)
            return Draft(said[0]).replace(said[1], axis).edit() if said is not None else None
        if is_shared:
            return None
        _, end = code.span(call)
        listed = bool(call.args or call.keywords)
        return draft.replace_between(end - 1, end - 1, f"{', ' if listed else ''}axis={axis}").edit()
    if is_shared or len(shape) != 2:
        return None
    if place is not None and place.library is not None and place.subject is not None:
        return draft.replace(call, place.library("sigmoid", code.written(place.subject))).edit()
    return None


def _serves_others(group: Group) -> bool:
    """Whether the line also computes what has another shape, as that of a function does which several lines call."""
    op, shape = group.op, _shape_of_culprit(group)
    same = (each for each in group.trace.ops if op is not None and (each.type, each.source) == (op.type, op.source))
    return any(each.outputs and each.outputs[0].shape != shape for each in same)


def _said_by_caller(group: Group, code: Code, given: ast.expr) -> tuple[Code, ast.expr] | None:
    """Where the value of an argument is written: there, unless it is an argument of the function around it. Others may
    call that too, so then it is what its only call in the step gives it; `None` if there are more."""
    function = code.function(given)
    if not isinstance(given, ast.Name) or not isinstance(function, ast.FunctionDef):
        return code, given
    names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    if given.id not in names:
        return code, given
    told = [
        (each, value)
        for each in program_of(group.trace).passages
        for node in ast.walk(each.tree)
        if isinstance(node, ast.Call) and name_of(node.func) == function.name and function not in each.around(node)
        if (value := argument_of(node, -1 if names[0] == "self" else names.index(given.id), given.id)) is not None
    ]
    return told[0] if len(told) == 1 else None


def along_rows(group: Group) -> Iterator[Candidate]:
    """For a softmax over the rows of a batch, or over another axis than the last one."""
    place = place_of_group(group)
    axis = place.argument(1, "axis") if place is not None else None
    if place is not None and isinstance(axis, ast.Constant) and axis.value in (0, 1, 2):
        cost = (
            "The values along the last axis add up to one."
            if axis.value
            else "The results of a row no longer depend on the other rows."
        )
        yield from candidates(cost, place.draft().replace(axis, "-1").edit())


def _shape_of_culprit(group: Group) -> tuple[int, ...] | None:
    outputs = group.op.outputs if group.op is not None else ()
    return outputs[0].shape if outputs else None


def without_clipping(group: Group) -> Iterator[Candidate]:
    """Passes the gradient through a clip, whose value stays the same."""
    place = place_of_group(group)
    if place is None or place.call is None or place.subject is None:
        return
    if name_of(place.call.func) not in ("clip_by_value", "clip", "minimum", "maximum", "relu6", "hard_sigmoid"):
        return
    if group.suspect.state.status == "connected" and name_of(place.subject) != short(group):
        return  # of two limits, one after the other, it would pass only one
    if group.suspect.culprit != group.culprit or limits_exchanged(group.trace, group.culprit) is not None:
        return  # no gradient arrives at the limit: the product of two limited factors is flat where both are zero
    cost = "The values stay clipped; the gradient is that of the unclipped value."
    yield from candidates(cost, straight_through(place, place.call, place.subject))


def limits_in_order(group: Group) -> Iterator[Candidate]:
    """Exchanges the limits of a clip whose lower one is greater than the upper one."""
    place = place_of_group(group)
    if place is None or place.call is None or limits_exchanged(group.trace, group.culprit) is None:
        return
    named = [each.value for each in place.call.keywords if each.arg in _LIMITS]
    limits = [*place.call.args[1:3], *named]
    if name_of(place.call.func) in ("clip_by_value", "clip") and len(limits) == 2:
        low, high = (place.code.written(each) for each in limits)
        draft = place.draft().replace(limits[0], high).replace(limits[1], low)
        yield from candidates("Values between the limits are passed unchanged.", draft.edit())


_LIMITS = ("clip_value_min", "clip_value_max", "x_min", "x_max")


def without_xla(group: Group) -> Iterator[Candidate]:
    """Compiles the function without XLA."""
    for code in program_of(group.trace).passages:
        for node in ast.walk(code.tree):
            if not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
                if keyword.arg in ("jit_compile", "experimental_compile") and on:
                    cost = "The function runs without XLA."
                    yield from candidates(cost, Draft(code).replace(keyword.value, "False").edit())
                    return


def stopped_sample(group: Group) -> Iterator[Candidate]:
    """Stops the gradient of the sample where its own density is computed."""
    place = place_of_group(group)
    if place is None or place.library is None or group.op is None:
        return
    if takes_back_its_value(group.suspect.topology, group.culprit):
        return  # no sample: stopping that side would leave the gradient of the other, with the wrong sign
    density = next(
        (
            node
            for node in place.code.parts_at(place.source.line)
            if isinstance(node, ast.Call) and name_of(node.func) == "log_prob" and node.args
        ),
        None,
    )
    cost = "The distribution of the sample now affects the loss only through the density, as a score function requires."
    sides = (place.node.left, place.node.right) if isinstance(place.node, ast.BinOp) else ()
    given = density.args[0] if density is not None else _sample(group, sides)
    if given is not None:
        stopped = place.library("stop_gradient", place.code.written(given))
        yield from candidates(cost, place.draft().replace(given, stopped).edit())


def stopped_side(group: Group) -> Iterator[Candidate]:
    """Stops the gradient of the old side of a difference or a ratio, such as `new - old`."""
    place = place_of_group(group)
    if place is None or place.library is None or not isinstance(place.node, ast.BinOp):
        return
    sides = place.node.left, place.node.right
    held = sides[old_side(*map(place.code.written, sides))]
    stopped = place.library("stop_gradient", place.code.written(held))
    yield from candidates(_HELD, place.draft().replace(held, stopped).edit())


def old_side(left: str, right: str) -> int:
    """Which side of a difference or a ratio is meant as a constant: the left one, 0, if only its names say so."""
    is_left, is_right = (not _OLD.isdisjoint(re.split("[^a-z]+", side.lower())) for side in (left, right))
    return 0 if is_left and not is_right else 1


_OLD = frozenset(
    {"old", "prev", "previous", "before", "ref", "reference", "behaviour", "behavior", "teacher", "frozen"}
)

_HELD = (
    "The forward values do not change; this side is a constant for the gradient, as a value from before the update is. "
    "If the other side is the old one, stop that instead: otherwise the gradient has the wrong sign."
)


def _sample(group: Group, sides: tuple[ast.expr, ...]) -> ast.expr | None:
    """The side of a difference that is a sample around the other."""
    which = sample_in(group.suspect.topology, group.culprit) if len(sides) == 2 else -1
    return sides[which] if which >= 0 else None
