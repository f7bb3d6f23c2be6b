"""Code in a sentence, under the names by which the user's file has imported TensorFlow and Keras."""

from __future__ import annotations

import re

from tb_gradflow.analyse.user_code.code import program_of
from tb_gradflow.analyse.words.names import Group

_CODE = re.compile(r"`[^`]*`")
_TENSORFLOW, _OPS, _KERAS = (re.compile(rf"(?<![\w.]){name}\.(?=[a-z])") for name in ("tf", r"keras\.ops", r"keras"))


def as_imported(group: Group, text: str) -> str:
    """A fix with `t.sigmoid` instead of `tf.sigmoid` if the file has `import tensorflow as t`, and the same for Keras.
    A file that also has the usual name keeps it.
    """
    source = group.source
    if source is None or "`" not in text:
        return text
    modules = program_of(group.trace).modules(source.file)
    named = {module: name for name, module in reversed(modules.items())}
    given: list[tuple[re.Pattern[str], str]] = []
    if "tf" not in modules and "tensorflow" in named:
        given.append((_TENSORFLOW, f"{named['tensorflow']}."))
    if "keras.ops" in named:
        given.append((_OPS, f"{named['keras.ops']}."))
    if "keras" not in modules and "keras" in named:
        given.append((_KERAS, f"{named['keras']}."))
    return _CODE.sub(lambda found: _replaced(found.group(), given), text) if given else text


def _replaced(code: str, given: list[tuple[re.Pattern[str], str]]) -> str:
    for pattern, name in given:
        code = pattern.sub(name, code)
    return code
