"""Words for gradients, losses, weights and batches that are NaN or infinite."""

from __future__ import annotations

from math import prod

from tb_gradflow.analyse.kinds import constant_of
from tb_gradflow.analyse.measured import NONFINITE_AFTER, NONFINITE_BEFORE
from tb_gradflow.analyse.onset import Onset
from tb_gradflow.analyse.words.code import Call, bracketed, innermost_call
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, namespace

_BROKEN = "{plight}: "
_NEAR = 6


def where_inactive(group: Group) -> Text:
    names, call = fields(group), call_of(group)
    product = group.op is not None and group.op.type in ("Mul", "MatMul")
    why = "multiplies with something that is not finite" if product else "has no finite derivative"
    x, hidden = _made_safe(call) if call else ("x", "f(safe)")
    batch = _of_batch(group)
    return Text(
        f"{names['they_get']} NaN: {names['op']} {why} for some elements, and `tf.where` hides their value but not "
        f"their gradient, which becomes 0 * inf.{' ' + batch if batch else ''}",
        f"Make what goes in safe as well: `safe = tf.where(ok, {x}, 1.0)`, then `tf.where(ok, {hidden}, other)`.",
    )


def _made_safe(call: Call) -> tuple[str, str]:
    """What has to be safe, and the user's expression with that in its place.

    Of `alpha * tf.math.log(x)` it is the argument of the logarithm, of `a / b` the divisor.
    """
    inner = innermost_call(call.text)
    if inner is not None:
        return inner.subject, call.text.replace(inner.text, inner.with_subject("safe"))
    return call.arguments[-1], f"{bracketed(call.arguments[0])} {call.head} safe"


def square_root(group: Group) -> Text:
    """`tf.norm` and `tf.math.reduce_std` end in a square root that has no place for an epsilon: written out."""
    name = ((group.op.api if group.op else None) or "").rpartition(".")[2]
    inside = _UNDER_THE_ROOT.get(name, "{bx}")
    if _is_undefined(group) and name not in _UNDER_THE_ROOT:
        return Template(
            _BROKEN + "{op} is given something negative, where there is no square root.",
            "Keep it above zero: `{lib}.sqrt({lib}.maximum({x}, 1e-12))`.",
        )(group)
    return Template(
        _BROKEN + "the derivative of {op} is infinite at zero, and something is zero there.",
        f"Keep away from zero: `{{lib}}.sqrt({inside} + 1e-12)`.",
    )(group)


_UNDER_THE_ROOT = {
    "norm": "tf.reduce_sum(tf.square({x}), axis=-1)",
    "reduce_euclidean_norm": "tf.reduce_sum(tf.square({x}), axis=-1)",
    "reduce_std": "tf.math.reduce_variance({x})",
    "std": "keras.ops.var({x})",
}


def logarithm(group: Group) -> Text:
    probabilities = _type_behind(group, ("Softmax", "Sigmoid"))
    if probabilities:
        stable = "tf.nn.log_softmax" if probabilities == "Softmax" else "tf.math.log_sigmoid"
        fix = f"Compute it from the logits: `{stable}(logits)`, or take the loss from them, `from_logits=True`."
    else:
        fix = "Keep it above zero: `{head}({lib}.maximum({x}, 1e-7))`."
    why = "something negative, which has no" if _is_undefined(group) else "zero or less, where there is no finite"
    return Template(_BROKEN + "{op} is given " + why + " logarithm.", fix)(group)


def power(group: Group) -> Text:
    if _is_undefined(group):
        return Template(
            _BROKEN + "{op} is given something negative, which has no such power.",
            "Keep it above zero: `tf.pow(tf.maximum({x}, 1e-7), p)`.",
        )(group)
    return Template(
        _BROKEN + "the derivative of {op} is infinite at zero, and something is zero there.",
        "Keep away from zero: `tf.pow({bx} + 1e-7, p)`.",
    )(group)


def _is_undefined(group: Group) -> bool:
    """Whether the value itself was NaN: the loss is NaN, and the function is finite where its derivative is not; or
    the loss is NaN and the gradient is not."""
    suspect = group.suspect
    if group.op is None or suspect.measured.loss_is_finite(suspect.target):
        return False
    hidden = suspect.state.status not in ("nan", "inf")
    return hidden or (group.op.type in ("Sqrt", "Pow") and suspect.measured.loss_is_nan(suspect.target))


def _type_behind(group: Group, types: tuple[str, ...]) -> str:
    """The nearest op of one of `types` that the culprit's argument is made by; empty if there is none."""
    trace = group.trace
    queue = [(edge.op, 1) for edge in (group.op.inputs if group.op else ()) if edge.op >= 0]
    for op, steps in queue:  # grows while it is walked
        if trace.ops[op].type in types:
            return trace.ops[op].type
        if steps < _NEAR:
            queue.extend((edge.op, steps + 1) for edge in trace.ops[op].inputs if edge.op >= 0)
    return ""


def division(group: Group) -> Text:
    if group.op is not None and group.op.type == "Mean":
        return Template(
            _BROKEN + "{op} averages nothing: not one element was left in this step.",
            "Let an empty selection count as zero: `tf.math.divide_no_nan(tf.reduce_sum({x}), "
            "tf.cast(tf.size({x}), tf.float32))`.",
        )(group)
    call = call_of(group)
    over = ", ".join(call.arguments[:2]) if call and call.head == "/" else "total, count"
    return Template(_BROKEN + "{op} divides zero by zero.", f"Divide safely: `tf.math.divide_no_nan({over})`.")(group)


def exponential(group: Group) -> Text:
    """The stable function that does what is done with the exponential by hand."""
    fix = _stable_form(group)
    how = f"Use the stable form: `{fix}`." if fix else "Keep the exponent in range: `{head}({lib}.minimum({x}, 80.0))`."
    return Template(_BROKEN + "{op} overflows: above 88 it is infinite.", how)(group)


def _stable_form(group: Group) -> str:
    """Told by what follows the exponential: `log(1 + e)`, `log(sum(e))`, `e / sum(e)`, `e / (1 + e)`."""
    topology, trace, keras = group.suspect.topology, group.trace, namespace(group) == "keras.ops"
    neural = "keras.ops" if keras else "tf.nn"
    with_one = summed = False
    queue = [(user, 1) for user in topology.onward(group.culprit)] if group.culprit >= 0 else []
    for op, steps in queue:  # grows while it is walked
        kind = trace.ops[op].type
        with_one = with_one or (kind in _ADDITIONS and 1.0 in (constant_of(trace.ops[op], side) for side in (0, 1)))
        summed = summed or kind == "Sum"
        if kind == "Log1p" or (kind == "Log" and with_one):
            return f"{neural}.softplus({{x}})"
        if kind == "Log" and summed:
            return f"{'keras.ops.logsumexp' if keras else 'tf.reduce_logsumexp'}({{x}}, axis=-1)"
        if kind in ("RealDiv", "Reciprocal") and (summed or with_one):
            turned = constant_of(trace.ops[op], 0) is not None and not summed
            return f"{neural}.{'softmax' if summed else 'sigmoid'}({'-{bx}' if turned else '{x}'})"
        if steps < _NEAR and kind in _HANDING_ON:
            queue.extend((user, steps + 1) for user in topology.onward(op))
    return ""


_ADDITIONS = ("AddV2", "Add")
_HANDING_ON = (*_ADDITIONS, "Sum", "Reshape", "Mul", "ExpandDims", "Squeeze", "Cast", "Identity")


def decomposition(group: Group) -> Text:
    kind = group.op.type if group.op else ""
    if kind in ("SelfAdjointEigV2", "Svd", "Eig"):
        return Template(
            _BROKEN + "{op} meets values that are equal, and its derivative divides by their differences.",
            "Train on the values alone, or pull them apart first: "
            "`{bx} + tf.linalg.diag(1e-3 * tf.range(n, dtype=tf.float32))`.",
        )(group)
    return Template(
        _BROKEN + "{op} is given a matrix that is singular, or nearly so, and has no inverse.",
        "Move it away from singular: `{head}({bx} + 1e-4 * tf.eye(tf.shape({x})[-1]))`.",
    )(group)


def weights(group: Group) -> Text:
    measured = group.suspect.measured
    bad = measured.nonfinite_weights(group.suspect.target) or tuple(sorted(measured.nonfinite_before))
    return Text(
        f"The weights were not finite before this step began: {_counted(group, bad, NONFINITE_BEFORE)}. Whatever is "
        f"computed from them is not finite either; nothing in this step is to blame.{_since(measured.onset)}",
        _from_there(measured.onset),
    )


def _since(onset: Onset | None) -> str:
    if onset is None:
        return ""
    if onset.recorded:
        return f" It began in step {onset.last}."
    if onset.last >= 0:
        return f" It began between the recorded steps {onset.last} and {onset.first}."
    return f" It began before the first recorded step, {onset.first}."


def _from_there(onset: Onset | None) -> str:
    if onset is not None and onset.findings:
        return f"Mend what happened in step {onset.last}, and start again from weights of before it."
    return (
        "Start again from finite weights, a checkpoint from before or a new model, and record every step, "
        "`GradFlowCallback(log_dir, update_freq=1)`, to see the one in which it begins."
    )


def update(group: Group) -> Text:
    half = any(group.trace.variables[variable].dtype == "float16" for variable in group.variables)
    fix = (
        'Keep the weights in float32, `keras.config.set_dtype_policy("mixed_float16")`, or give the optimizer '
        "an epsilon that float16 can hold: `keras.optimizers.Adam(epsilon=1e-4)`."
        if half
        else "Lower the learning rate, and look at what the optimizer divides by: its `epsilon`, its clipping."
    )
    return Text(
        f"The update of this step made weights that are not finite, from gradients that are: "
        f"{_counted(group, group.variables, NONFINITE_AFTER)}.",
        fix,
    )


def _counted(group: Group, variables: tuple[int, ...], column: int, most: int = 3) -> str:
    numbers = group.suspect.measured.variables
    assert numbers is not None
    told = [
        f"`{group.trace.variables[each].name}` ({int(numbers[each, column])} of "
        f"{prod(group.trace.variables[each].shape)} numbers)"
        for each in variables[:most]
    ]
    more = len(variables) - most
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def batch(group: Group) -> Text:
    [(first, _), *_] = group.suspect.measured.nonfinite_inputs
    x = first if first.isidentifier() else "x"
    return Text(
        f"{fields(group)['plight']}: {_of_batch(group)[0].lower()}{_of_batch(group)[1:]}",
        f"Clean the data before training: `{x} = np.nan_to_num({x})`, or leave those rows out, "
        f"`keep = np.isfinite({x}).reshape(len({x}), -1).all(axis=1)`.",
    )


def _of_batch(group: Group) -> str:
    """What is wrong with the batch, as a sentence; empty if nothing is."""
    bad = group.suspect.measured.nonfinite_inputs
    told = [
        f"`{name}` holds "
        + " and ".join(f"{n} {word}" for n, word in ((r.nan_count, "NaN"), (r.inf_count, "Inf")) if n)
        for name, r in bad
    ]
    return f"In the batch {', '.join(told)}." if told else ""


def overflow(group: Group) -> Text:
    return Template(
        _BROKEN + "at {op} it exceeds the largest float16, 65504.",
        "Compute this part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
    )(group)


def unexplained(group: Group) -> Text:
    if group.suspect.producer < 0:
        return Template(
            _BROKEN + "the gradients are finite all the way, so a value broke where no gradient shows it.",
            "Look for it with `tf.debugging.enable_check_numerics()`.",
        )(group)
    return Template(
        _BROKEN + "the gradient is finite behind {op}, and not in front of it.",
        'Look at what goes into {op} in this step: `tf.debugging.check_numerics({x}, "{kind}")`.',
    )(group)


WRITERS: dict[str, Writer] = {
    "where_inactive_branch": where_inactive,
    "sqrt_at_zero": square_root,
    "zero_over_zero": division,
    "log_zero": logarithm,
    "exp_overflow": exponential,
    "pow_fraction_at_zero": power,
    "acos_at_one": Template(
        _BROKEN + "the derivative of {op} is infinite at the edge of its domain.",
        "Stay inside: clip its argument, `tf.clip_by_value({x}, -1 + 1e-6, 1 - 1e-6)`.",
    ),
    "softmax_all_masked": Template(
        _BROKEN + "{op} meets a row that is masked out entirely.",
        "Mask with a large negative number, `-1e9`, in the place of `-inf`.",
    ),
    "degenerate_decomposition": decomposition,
    "fp16_overflow": overflow,
    "nonfinite_weights": weights,
    "nonfinite_update": update,
    "nonfinite_input": batch,
    "not_finite": unexplained,
}
