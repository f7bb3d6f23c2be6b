"""Words for a logarithm, a divisor or a root that a ReLU makes exactly zero."""

from __future__ import annotations

from tb_gradflow.analyse.signs import relu_behind
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, called, place_of


def of_relu(writer: Writer) -> Writer:
    """What `writer` says, and where the zeros come from. Where the user's line has no such call, as with a distribution
    that takes it inside, that is the place to mend."""

    def written(group: Group) -> Text:
        text, relu = writer(group), relu_behind(group.trace, group.culprit)
        if relu < 0:
            return text
        maker = called(group.trace, relu) + place_of(group.trace, relu)
        message = f"{text.message} It is given what {maker} makes, which is exactly zero wherever a number is negative."
        if call_of(group) is not None:
            return Text(message, text.fix)
        return Text(message, f'Make it positive: `activation="softplus"` in the place of {maker}, and add `1e-6`.')

    return written
