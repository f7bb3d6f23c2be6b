"""The names in a finding: variables, functions, places."""

from __future__ import annotations

import functools
import ntpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import scopes_of
from tb_gradflow.analyse.step.status import State
from tb_gradflow.analyse.words.code import Call, assigned_by, call_on, calls_in_order, slices_in_order
from tb_gradflow.record.schema import Layer, Op, Source, Trace


@dataclass(frozen=True, slots=True)
class Text:
    """Message and fix of a finding."""

    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Group:
    """Variables that share a cause and a culprit.

    Attributes:
        verdict: What was found.
        suspect: The first of the suspects it was found on.
        states: The variables and their results, in the order of the trace.
        culprit: Index of the culprit; -1 if there is none.
        others: Further culprits that would still cut the same variables off.
        culprits: The culprit of each variable.
        is_cut: Whether the cause is one by which structure cuts variables off.
    """

    verdict: Verdict
    suspect: Suspect
    states: tuple[State, ...]
    culprit: int
    others: tuple[int, ...] = ()
    culprits: Mapping[int, int] = field(default_factory=dict)
    is_cut: bool = False

    @property
    def trace(self) -> Trace:
        return self.suspect.topology.trace

    @property
    def variables(self) -> tuple[int, ...]:
        return tuple(state.variable for state in self.states)

    @property
    def op(self) -> Op | None:
        return self.trace.ops[self.culprit] if self.culprit >= 0 else None

    @property
    def source(self) -> Source | None:
        return source_of(self.trace, self.culprit)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.trace.variables[variable].name for variable in self.variables)


# Their output values are input values, exactly or almost.
_SAME_VALUES = frozenset(
    {"Identity", "Reshape", "Squeeze", "ExpandDims", "StridedSlice", "GatherV2", "GatherNd", "Cast", "Transpose"}
    | {"Maximum", "Minimum", "ClipByValue", "Sub", "AddV2", "SelectV2"}
)

# Sums and scaling use these.
TERMS = frozenset({"Sum", "Mul", "AddV2", "Mean", "Reshape", "Squeeze", "ExpandDims", "RealDiv", "Identity"})

_NEAR = 8

Writer = Callable[[Group], Text]
"""Writes the texts of one cause."""

# Op types whose names are unclear to users, or too detailed.
_SPOKEN = {
    "AddV2": "+", "Sub": "-", "Mul": "*", "RealDiv": "/", "FloorDiv": "//", "FloorMod": "%", "Pow": "**",
    "Less": "<", "LessEqual": "<=", "Greater": ">", "GreaterEqual": ">=", "Equal": "==", "NotEqual": "!=",
    "SelectV2": "tf.where", "Select": "tf.where", "BatchMatMulV2": "matmul", "TopKV2": "top_k",
    "StatelessIf": "tf.cond", "If": "tf.cond", "While": "tf.while_loop", "StatelessWhile": "tf.while_loop",
    "StatelessCase": "tf.switch_case", "Case": "tf.switch_case", "EagerPyFunc": "tf.py_function",
    "PyFunc": "tf.numpy_function", "PyFuncStateless": "tf.numpy_function", "FusedBatchNormV3": "batch normalisation",
    "AssignVariableOp": "assign", "AssignAddVariableOp": "assign_add", "AssignSubVariableOp": "assign_sub",
    "Assign": "assign", "AssignAdd": "assign_add", "AssignSub": "assign_sub", "StridedSliceAssign": "assign",
    "ResourceStridedSliceAssign": "assign", "ResourceScatterNdUpdate": "scatter_nd_update",
    "ResourceScatterNdAdd": "scatter_nd_add", "ResourceScatterNdSub": "scatter_nd_sub",
    "ResourceScatterUpdate": "scatter_update", "ResourceScatterAdd": "scatter_add",
    "ResourceScatterSub": "scatter_sub", "TensorListSetItem": "tf.TensorArray.write",
    "Switch": "tf.cond", "Merge": "tf.cond", "LoopCond": "tf.while_loop",
    "Enter": "tf.while_loop", "Exit": "tf.while_loop", "NextIteration": "tf.while_loop",
    "StopGradient": "tf.stop_gradient", "AdjustContrastv2": "tf.image.adjust_contrast",
    "AdjustHue": "tf.image.adjust_hue", "AdjustSaturation": "tf.image.adjust_saturation",
}  # fmt: skip


def spoken(kind: str) -> str:
    """The usual word for an op type."""
    return _SPOKEN.get(kind, kind)


def quoted(names: Sequence[str], noun: str = "variables", most: int = 3) -> str:
    """Names in code quotes, the first few of them: `a`, `b` and 12 more variables."""
    if len(names) <= most:
        marked = [f"`{name}`" for name in names]
        return " and ".join([", ".join(marked[:-1]), marked[-1]]) if len(marked) > 1 else "".join(marked)
    shown = ", ".join(f"`{name}`" for name in names[: most - 1])
    return f"{shown} and {len(names) - most + 1} more {noun}"


def subject(group: Group, verb: str, verbs: str) -> str:
    """The variables with the verb that fits their number, such as "`threshold` gets"."""
    return f"{quoted(group.names)} {verb if len(group.variables) == 1 else verbs}"


def short(group: Group) -> str:
    """The last part of the first variable's name, which the user's code probably uses; for a tensor, the user's
    name."""
    if group.trace.variables[group.variables[0]].computed:
        return group.names[0]
    written = group.trace.variables[group.variables[0]].written
    name = written.rpartition(".")[2] if written else group.names[0].rpartition("/")[2].partition(":")[0]
    return name if name.isidentifier() else "x"


def called(trace: Trace, index: int) -> str:
    """The user's name for an op: the function as written in their line, or otherwise the kind of op."""
    op, source = trace.ops[index], source_of(trace, index)
    if op.custom_gradient and op.api is None:
        return "the custom gradient"
    name = _called_on_line(op, source)
    if name.endswith(".__call__"):  # an object, such as a loss, whose ops are in a scope with its name
        name = op.name.rpartition("/")[0].rpartition("/")[2] or name
    if name == "[]":
        return _slice(trace, index)
    call = call_on(source.code, name) if source is not None else None
    return f"`{call.head if call is not None else name}`"


def _called_on_line(op: Op, source: Source | None) -> str:
    """The function that a line called: where its public name is not known, as in the backends of Keras, one that is
    called like the kind of op. Otherwise the usual word for that."""
    if op.api or op.type in _SPOKEN or source is None:
        return op.api or spoken(op.type)
    name = re.sub(r"V\d+$", "", op.type).lower()
    call = call_on(source.code, name)
    # An attribute that is called like the op may be a whole layer, of which the op is only the activation.
    return op.type if call is None or call.head.startswith("self.") else name


def _slice(trace: Trace, index: int) -> str:
    """A slice as the user wrote it, if it is clear which one in the line it is."""
    op, source = trace.ops[index], source_of(trace, index)
    same = [place for place, each in enumerate(trace.ops) if (each.source, each.api) == (op.source, op.api)]
    written = slices_in_order(source.code) if source is not None else []
    return f"`{written[same.index(index)]}`" if len(written) == len(same) else "a slice"


def source_of(trace: Trace, index: int) -> Source | None:
    """The user's line behind an op; None if there is none."""
    place = trace.ops[index].source if index >= 0 else None
    return trace.sources[place] if place is not None else None


def place_of(trace: Trace, index: int) -> str:
    """Where an op is: file and line, or the layer, or the name scope. In brackets, empty if there is nothing to say."""
    source, layer = source_of(trace, index), layer_of(trace, index)
    if source is not None:
        # If the line called a layer, not the op itself, the user knows the layer.
        inside = f"in layer `{layer}`, " if layer and trace.ops[index].api is None else ""
        return f" ({inside}{file_name(source.file)}:{source.line})"
    if layer:
        return f" (in layer `{layer}`)"
    scope = trace.ops[index].name.rpartition("/")[0]
    return f" (in `{scope}`)" if scope else ""


def file_name(path: str) -> str:
    """The last part of a path, of any system."""
    return ntpath.basename(path)


def layer_of(trace: Trace, index: int) -> str:
    """The name of the innermost layer around an op; empty if there is none."""
    return next((layer.name for layer in layers_around(trace, index)), "")


def layers_around(trace: Trace, index: int) -> Iterator[Layer]:
    """The layers around an op, innermost first."""
    layers = _layers_by_scope(_Layers(trace.layers))
    return (layers[scope] for scope in scopes_of(trace.ops[index].name) if scope in layers)


class _Layers:
    """The layers of one trace, compared by identity because there may be thousands."""

    def __init__(self, layers: tuple[Layer, ...]) -> None:
        self.layers = layers

    def __hash__(self) -> int:
        return id(self.layers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Layers) and self.layers is other.layers


# Cached for the last few traces: findings look up layers often, and several reports may be made at the same time.
@functools.lru_cache(maxsize=4)
def _layers_by_scope(of: _Layers) -> Mapping[str, Layer]:
    return {layer.scope: layer for layer in of.layers}


def made_by(group: Group, types: Sequence[str], through: frozenset[str] = _SAME_VALUES) -> str:
    """The type of the op that computes the input of the culprit, if it is one of `types` and only ops of `through` are
    between them; otherwise empty. Divisors do not count."""
    trace = group.trace
    queue = [edge.op for edge in (group.op.inputs if group.op is not None else ()) if edge.op >= 0]
    for op in queue:  # grows while it is walked
        if trace.ops[op].type in types:
            return trace.ops[op].type
        if trace.ops[op].type in through and len(queue) < _NEAR:
            divides = trace.ops[op].type == "RealDiv"
            queue.extend(edge.op for edge in trace.ops[op].inputs if edge.op >= 0 and not (divides and edge.input))
    return ""


def blamed(group: Group) -> str:
    """The culprit with its place: "`tf.round` (head.py:12)"."""
    return called(group.trace, group.culprit) + place_of(group.trace, group.culprit)


def call_of(group: Group) -> Call | None:
    """The user's own call of the culprit, if their line shows it. Of several, one that names the variable."""
    source, op = group.source, group.op
    if source is None or op is None:
        return None
    name = _called_on_line(op, source)
    call = _call_in_order(group.trace, group.culprit, source.code, name) or call_on(source.code, name, short(group))
    return replace(call, about=limited_input(group, group.culprit)) if call is not None else None


def call_at(group: Group, op: int) -> Call | None:
    """The user's call of the function that created an op."""
    source = source_of(group.trace, op)
    return call_on(source.code, called(group.trace, op).strip("`")) if source is not None else None


def limited_input(group: Group, op: int) -> int:
    """Which input of a minimum or maximum is the value that it limits: the only one that depends on a variable. The
    limit may be written first, `tf.maximum(zero, x)`. The first input of any other op."""
    if op < 0 or group.trace.ops[op].type not in ("Minimum", "Maximum"):
        return 0
    of_variables = group.suspect.topology.of_variables
    learned = [edge.input for edge in group.trace.ops[op].inputs if edge.op >= 0 and of_variables[edge.op]]
    return learned[0] if len(learned) == 1 else 0


def _call_in_order(trace: Trace, index: int, code: str, name: str) -> Call | None:
    """The one of several calls of a function on a line that created an op: ops are created in the order in which Python
    evaluates the line. None if the line did not create as many of these ops as it has calls, or a multiple of that."""
    calls = calls_in_order(code, name)
    if len(calls) < 2:
        return None
    op = trace.ops[index]
    made = [
        place
        for place, each in enumerate(trace.ops)
        if (each.source, each.type, each.api) == (op.source, op.type, op.api)
    ]
    # A loop, or a function that is called several times, creates the same ops again, in the same order.
    return calls[made.index(index) % len(calls)] if made and len(made) % len(calls) == 0 else None


def api_of(group: Group) -> str:
    """The function that the user's line called; empty if unknown."""
    return (group.op.api if group.op else None) or ""


def network_of(name: str) -> str:
    """The parent of a variable's layer, according to the names; empty if there is none."""
    return name.partition("/")[0] if name.count("/") > 1 else ""


def result_of_line(group: Group) -> str:
    """The name of the result in the user's line, if nothing that the line computes reaches the loss; otherwise
    empty."""
    trace, target = group.trace, group.suspect.target
    if group.source is None or group.op is None or target < 0:
        return ""
    influence = group.suspect.topology.influence(target).hops
    used = any(influence[place] >= 0 for place, op in enumerate(trace.ops) if op.source == group.op.source)
    name = assigned_by(group.source.code)
    return name if name.isidentifier() and not used else ""


def unused_name(group: Group, *names: str) -> str:
    """A name for an intermediate value that the user's line does not use for something else: the first of several."""
    code = group.source.code if group.source is not None else ""
    free = (name for name in (names or ("v", "raw", "before_limits")) if re.search(rf"\b{name}\b", code) is None)
    return next(free, "unlimited")


def namespace(group: Group) -> str:
    """The module from which the user takes such functions: `tf` or `keras.ops`. For an operator, the rest of the line
    decides."""
    api = (group.op.api if group.op is not None else None) or ""
    code = group.source.code if group.source is not None and not api.startswith("tf.") else ""
    keras = api.startswith("keras.") or (_KERAS_OPS.search(code) is not None and "tf." not in code)
    return "keras.ops" if keras else "tf"


_KERAS_OPS = re.compile(r"(?<![\w.])(keras\.)?ops\.\w")
