"""Words for functions that are flat where they are used: saturated, clipped, of one class, dead, masked."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cancelling import takes_out
from tb_gradflow.analyse.causes.goal import is_last
from tb_gradflow.analyse.causes.zero import is_noise_of
from tb_gradflow.analyse.graph.op_sets import SOFTMAX
from tb_gradflow.analyse.step.measured import LARGE_INPUT
from tb_gradflow.analyse.words.clipped import FROM_LOGITS, clipped
from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template, fields
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    Writer,
    call_of,
    layer_of,
    namespace,
    quoted,
)
from tb_gradflow.analyse.words.shares import CHOICES
from tb_gradflow.analyse.words.steep import less_steep, made_large


def is_output(group: Group) -> bool:
    """Whether no weight is multiplied with what comes out of the culprit: then the loss is next."""
    return is_last(group.suspect.topology, group.suspect.target, group.culprit)


def large_inputs(group: Group) -> str:
    """What to do about a batch of large numbers; empty if it holds none."""
    trace, measured = group.trace, group.suspect.measured
    large = [(each.name, report.max_abs) for each in trace.inputs if (report := measured.of_row(each.row)) is not None]
    told = [(name, size) for name, size in large if size > LARGE_INPUT and name.partition("[")[0] != "y"]
    if not told:
        return ""
    name, size = told[0]
    x = name if name.isidentifier() else "x"
    return f" In the batch `{name}` reaches {size:.3g}: scale it first, `({x} - {x}.mean(0)) / ({x}.std(0) + 1e-7)`."


def saturated_sigmoid(group: Group) -> Text:
    loop = group.op is not None and group.op.type in ("While", "StatelessWhile")
    what = "what goes into the gates of {op}" if loop else "what goes into {op}"
    logits = ", or " + FROM_LOGITS if is_output(group) and not loop else ""
    scaled = "Scale what goes in, for example by `keras.layers.BatchNormalization()` in front of it"
    if not group.trace.layers and not loop:
        scaled = "Scale what goes in, `{head}({bx} / 10.0)` or by more, until it is of about one"
    factor = made_large(group)
    told = f", which {factor}," if factor else ""
    if factor:
        scaled, logits = less_steep(factor), ""
    text = Template(
        SIZE + what + told + " is so large that its slope is next to nothing.",
        scaled + logits + ".",
    )(group)
    return Text(text.message, text.fix + large_inputs(group))


def saturated_softmax(group: Group) -> Text:
    size = "tf.math.sqrt(tf.cast(tf.shape(keys)[-1], tf.float32))"
    scaled = f"Scale the scores before the softmax, as attention does: `{{bx}} / {size}`."
    logits = "Scale what goes in, `{bx} / 10.0`, or " + FROM_LOGITS + "."
    text = Template(
        ZERO + "{op} is so sure of one class that its slope rounds to zero.", logits if is_output(group) else scaled
    )(group)
    return Text(text.message, text.fix + large_inputs(group))


def single_class(group: Group) -> Text:
    names = fields(group)
    hidden = group.suspect.state.status not in ("zero", "vanishing") and not is_noise_of(group.suspect, group.culprit)
    shape = _as_called(group)
    first = 0 if _is_of_a_variable_alone(group) else 1
    several = [axis for axis, size in enumerate(shape) if axis >= first and size != 1]
    sigmoid = "{lib}.sigmoid({x})" if call_of(group) is not None else 'activation="sigmoid"'
    fix = f"Use `{sigmoid}` for one unit, or one unit for each class."
    if "categorical_crossentropy" in (group.op.name if group.op is not None else ""):
        fix = 'For one unit use `loss="binary_crossentropy"` behind a sigmoid; or give each class a unit of its own.'
    softmax = "keras.ops.softmax" if namespace(group) == "keras.ops" else "tf.nn.softmax"
    called_there = call_of(group) is not None and not is_output(group)
    if several and len(shape) > 2 and not hidden:
        fix = f"Normalise over the axis with several entries: `{softmax}({{x}}, axis={several[0]})`."
    elif len(shape) == 2 and first == 1 and called_there and not hidden:
        fix += f" Entries that are weighed against each other lie along another axis: `{softmax}({{x}}, axis=0)`."
    if hidden:
        why = "The model's output says nothing: {op} normalises over an axis of length one, where the result is always "
        return Text((why + "1. The loss is taken from what goes in, so training does not show it.").format_map(names),
                    fix.format_map(names))  # fmt: skip
    message = (
        SIZE if group.suspect.state.status == "connected" else ZERO
    ) + "{op} normalises over an axis of length one, where the result is always 1."
    return Text(message.format_map(names), fix.format_map(names))


def _as_called(group: Group) -> tuple[int | None, ...]:
    """The culprit's shape as its caller counts axes: TensorFlow's softmax works on the last, and swaps another with
    it before and after."""
    shape = list((group.op.outputs[-1].shape if group.op is not None and group.op.outputs else None) or ())
    call = call_of(group)
    said = (call.argument(1, "axis") if call is not None else None) or "-1"
    axis = int(said) if said.lstrip("-").isdigit() else -1
    if -len(shape) <= axis < len(shape):
        shape[axis], shape[-1] = shape[-1], shape[axis]
    return tuple(shape)


def _is_of_a_variable_alone(group: Group) -> bool:
    """Whether what goes into the culprit is a weight in another shape: its first axis is not that of a batch."""
    trace, op = group.trace, group.culprit
    while op >= 0 and trace.ops[op].reads is None:
        sources = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0]
        if len(sources) != 1 or (op != group.culprit and trace.ops[op].type not in _RESHAPING):
            return False
        op = sources[0]
    return op >= 0


_RESHAPING = ("Reshape", "ExpandDims", "Squeeze", "Transpose", "Identity", "Cast")


def normalised(group: Group) -> Text:
    if group.op is not None and group.op.type in ("Softmax", "LogSoftmax"):
        return Template(
            SIZE + "the loss sums what {op} made to sum to one, so it is constant.",
            "Compare with targets: `keras.losses.categorical_crossentropy(y, probabilities)`.",
        )(group)
    return Template(
        SIZE + "at {op} values are normalised, and all of them then get the same gradient, as from a sum or a mean "
        "along the same axis: it does not depend on what comes in.",
        "Sum or average along another axis than the normalised one, or let what follows weigh the values differently.",
    )(group)


def branch(group: Group) -> Text:
    if group.op is not None and "Relu" in group.op.type:
        return Template(
            SIZE
            + "it takes effect where {op} lets something through, and in this step all values have the other sign.",
            "Nothing to repair if other batches have values of both signs.",
        )(group)
    if group.op is not None and group.op.type in ("While", "StatelessWhile"):
        return Template(
            SIZE + "in this step {op} made no round, and only the rounds use {them}.",
            "Nothing to repair if that depends on the data; else look at the condition of the loop.",
        )(group)
    chooses = group.op is not None and group.op.type in CHOICES
    return Template(
        SIZE
        + (
            "{op} hands the gradient of each element on to the side that it took there, and zero to the other; in this "
            "step it took the other one in every element that counts."
            if chooses
            else "{op} hands the gradient on to the branch that it chose, and none to the other; in this step it did "
            "not choose the branch that uses {them}."
        ),
        "Nothing to repair if that depends on the data; look at other steps.",
    )(group)


def without_influence(group: Group) -> Text:
    if group.op is not None and group.op.type == "Sub":
        return Template(
            "{they_have} no influence: both sides of {op} contain {them}. What arrives is rounding noise.",
            _harmless(group),
        )(group)
    if group.suspect.state.status == "unused":
        return Template(
            "{they_have} no influence: the loss is made of a derivative, and what {op} adds has none.",
            _harmless(group),
        )(group)
    if group.op is not None and group.op.type == "Mul":
        return Template(
            "{they_have} no influence: what follows {op} is divided by its own length or deviation, which takes every "
            "factor out again. What arrives is rounding noise.",
            "Harmless; leave the factor out, or put it behind the normalisation.",
        )(group)
    takers = [taker for op in dict.fromkeys(group.culprits.values()) if (taker := takes_out(group.suspect, op)) >= 0]
    layers = list(dict.fromkeys(layer_of(group.trace, taker) for taker in takers))
    kind = group.trace.ops[takers[0]].type if takers else ""
    name = "softmax" if kind in SOFTMAX else "difference of elements" if kind == "Sub" else "batch normalisation"
    each = "behind each of them" if len(group.variables) > 1 else "behind it"
    why = f"the {name} {each} ({quoted(layers, 'layers')}) takes every offset out again"
    if not takers or "" in layers:
        why = f"the {name} that follows {{op}}" if takers else "a normalisation, softmax or difference behind {op}"
        why += " takes every offset out again"
    arrives = "nothing" if group.suspect.state.status == "zero" else "rounding noise"
    return Template(
        "{they_have} no influence: " + why + f". What arrives is {arrives}.",
        _harmless(group),
    )(group)


def _harmless(group: Group) -> str:
    """A layer's bias can be switched off; anything else that is added can be left out."""
    biases = all(name.rpartition("/")[2].startswith("bias") and "/" in name for name in group.names)
    return "Harmless; `use_bias=False` saves the weights." if biases else "Harmless; the model can do without {them}."


WRITERS: dict[str, Writer] = {
    "saturation_sigmoid": saturated_sigmoid,
    "saturation_softmax": saturated_softmax,
    "saturation_clip": clipped,
    "saturation_quant_range": Template(
        ZERO + "all values lie inside the range of {op}, and only those outside move it.",
        "Start the range inside the values, or set it from their moving minimum and maximum.",
    ),
    "softmax_single_class": single_class,
    "normalised_then_summed": normalised,
    "branch_not_taken": branch,
    "shift_invariant_parameter": without_influence,
}
