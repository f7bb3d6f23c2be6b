"""A sigmoid or tanh is used where it is flat."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.flat.dead_relu import relu_unseen
from tb_gradflow.analyse.evidence.bodies import SQUASHING, loop_in, unrecorded_before
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.step.measured import LARGE_INPUT
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import FROM_LOGITS, is_output, large_inputs
from tb_gradflow.analyse.words.steep import less_steep, made_large

_SQUASHING = frozenset({"Sigmoid", "Tanh", "Erf", "Erfc", "Softsign", "Softplus"})


def rule(suspect: Suspect) -> Verdict | None:
    """A sigmoid or tanh with an input so large that its slope rounds to zero, or their piecewise linear versions."""
    straight = any(word in (suspect.op.api or "") for word in ("hard_sigmoid", "hard_tanh"))
    return Verdict("saturation_sigmoid", "warning") if straight or suspect.op.type in _SQUASHING else None


def branch_taken_is_flat(suspect: Suspect) -> Verdict | None:
    """Both branches of a `tf.cond` use the variable, so it was used, and the op inside the branch is flat."""
    if suspect.op.type not in ("If", "StatelessIf"):
        return None
    reached = suspect.topology.reached_from(suspect.topology.readers[suspect.state.variable])
    if not {1, 2} <= {edge.input for edge in suspect.op.inputs if edge.op in reached}:
        return None
    squashing = [op for op in unrecorded_before(suspect) if suspect.type_of(op) in SQUASHING]
    if squashing:
        return Verdict("saturation_sigmoid", "warning", squashing[-1])
    return relu_unseen(suspect)


def loop_saturates(suspect: Suspect) -> Verdict | None:
    """A recurrent layer whose gates get inputs so large that their slope is zero."""
    inside = unrecorded_before(suspect)
    loop = loop_in(suspect, inside)
    large = any(report.max_abs > LARGE_INPUT for report in suspect.measured.input_reports)
    squashes = any(suspect.type_of(op) in SQUASHING for op in inside)
    return Verdict("saturation_sigmoid", "warning", loop) if loop >= 0 and large and squashes else None


def message_and_fix(group: Group) -> Text:
    loop = group.op is not None and group.op.type in ("While", "StatelessWhile")
    what = "the gates of {op} are saturated: their input" if loop else "{op} is saturated: its input"
    logits = ", or " + FROM_LOGITS if is_output(group) and not loop else ""
    scaled = "Scale the input, for example with `keras.layers.BatchNormalization()` before it"
    if not group.trace.layers and not loop:
        scaled = "Scale the input until it is around one, for example with `{head}({bx} / 10.0)`"
    factor = made_large(group)
    told = f", which {factor}," if factor else ""
    if factor:
        scaled, logits = less_steep(factor), ""
    text = Template(
        SIZE + what + told + " is so large that the derivative is close to zero.",
        scaled + logits + ".",
    )(group)
    return Text(text.message, text.fix + large_inputs(group))


CAUSE = Cause(
    name="saturation_sigmoid",
    meaning="the gradient becomes zero at a sigmoid or tanh, hard ones included; or one of these alone shrinks it by "
    "four orders of magnitude; or it becomes zero in a loop that contains them and whose inside is not recorded",
    severity="warning; error where no variable gets any gradient, in this step or before",
    fix="scale the input",
    text=message_and_fix,
)
