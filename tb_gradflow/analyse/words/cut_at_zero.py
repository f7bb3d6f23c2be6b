"""Texts for a logarithm, a divisor or a root whose input a ReLU makes exactly zero."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.signs import relu_behind
from tb_gradflow.analyse.words.code import call_on
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, called, place_of, source_of

_DIVISIONS = ("RealDiv", "Div")


def of_relu(writer: Writer) -> Writer:
    """The text of `writer`, and the origin of the zeros. If the user's line has no such call, as with a distribution
    that takes a logarithm inside, the fix is at that origin."""

    def written(group: Group) -> Text:
        text, relu = writer(group), relu_behind(group.trace, group.culprit)
        if relu < 0:
            return text
        maker = called(group.trace, relu) + place_of(group.trace, relu)
        message = f"{text.message} Its input comes from {maker}, which returns exactly zero for negative values."
        if call_of(group) is not None and group.trace.ops[group.culprit].type in _DIVISIONS:
            return Text(
                message,
                f"Make the divisor positive: {_positive(group, relu)}. If the divisor may rightly be zero, such as an "
                f"empty count: {text.fix[0].lower()}{text.fix[1:]}",
            )
        if call_of(group) is not None:
            return Text(message, text.fix)
        return Text(
            message, f'Make the input positive: use `activation="softplus"` instead of {maker}, and add `1e-6`.'
        )

    return written


def _positive(group: Group, relu: int) -> str:
    """The replacement for the ReLU, in the user's line if that calls it."""
    source, maker = source_of(group.trace, relu), called(group.trace, relu)
    call = call_on(source.code, maker.strip("`")) if source is not None else None
    if call is None and (source is None or not group.trace.ops[relu].api):
        return f'use `activation="softplus"` instead of {maker}, and add `1e-6`'
    library = "keras.ops" if (group.trace.ops[relu].api or "").startswith("keras.") else "tf.nn"
    x, whole = (call.subject, f"`{call.text}`") if call is not None else ("x", maker)
    return f"use `{library}.softplus({x}) + 1e-6` instead of {whole}"
