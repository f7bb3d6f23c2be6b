"""Generates docs/masks.md: which layers of Keras make, use, propagate and drop a mask, measured on a small batch.

python -m tests.docs.mask_table
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from tb_gradflow.analyse.causes.wrong_value.mask_dropped import FORWARD, MASKED_MAXIMUM, ZEROS

PAGE = Path(__file__).parents[2] / "docs" / "masks.md"

Behaviour = Literal["makes", "uses and carries", "uses", "each step alone", "mixes and carries", "drops", "raises"]

_BATCH, _STEPS, _CHANNELS = 2, 6, 6
# Between steps that count, so that one direction of time does not stand for both.
_PADDING = (1, 4)
_LENGTH = 6
# Of the axes of one example that are neither its steps nor its channels.

_ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"AdaptiveAveragePooling{n}D": lambda: {"output_size": 3} for n in (1, 2, 3)},
    **{f"AdaptiveMaxPooling{n}D": lambda: {"output_size": 3} for n in (1, 2, 3)},
    **{f"AveragePooling{n}D": lambda: {"pool_size": 2} for n in (1, 2, 3)},
    **{f"{kind}{n}D": lambda: {"filters": 3, "kernel_size": 3, "padding": "same"}
       for kind in ("Conv", "SeparableConv", "ConvLSTM") for n in (1, 2, 3)},
    **{f"Conv{n}DTranspose": lambda: {"filters": 3, "kernel_size": 3, "padding": "same"} for n in (1, 2, 3)},
    **{f"DepthwiseConv{n}D": lambda: {"kernel_size": 3, "padding": "same"} for n in (1, 2)},
    **{kind: lambda: {"units": 3, "return_sequences": True} for kind in ("LSTM", "GRU", "SimpleRNN")},
    **{kind: lambda: {"rate": 0.2} for kind in ("AlphaDropout", "Dropout", "GaussianDropout")},
    **{f"SpatialDropout{n}D": lambda: {"rate": 0.2} for n in (1, 2, 3)},
    "Activation": lambda: {"activation": "tanh"},
    "Bidirectional": lambda: {"layer": layers.GRU(3, return_sequences=True)},
    "Dense": lambda: {"units": 3},
    "Dot": lambda: {"axes": 2},
    "EinsumDense": lambda: {"equation": "bsc,cd->bsd", "output_shape": (None, 3)},
    "GaussianNoise": lambda: {"stddev": 0.1},
    "GroupNormalization": lambda: {"groups": 2},
    "GroupedQueryAttention": lambda: {"head_dim": 2, "num_query_heads": 2, "num_key_value_heads": 1},
    "Lambda": lambda: {"function": lambda x: 2.0 * x},
    "MultiHeadAttention": lambda: {"num_heads": 2, "key_dim": 2},
    "Permute": lambda: {"dims": (2, 1)},
    "RNN": lambda: {"cell": layers.GRUCell(3), "return_sequences": True},
    "Reshape": lambda: {"target_shape": (-1,)},
    "SpectralNormalization": lambda: {"layer": layers.Dense(3)},
    "TimeDistributed": lambda: {"layer": layers.Dense(3)},
}  # fmt: skip

_TWO_ARGUMENTS = ("GroupedQueryAttention", "MultiHeadAttention")
_LISTS = (
    "Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot", "Attention",
    "AdditiveAttention",
)  # fmt: skip

# Each is given tokens, numbers that are fixed before training, or one step; or is no layer by itself.
_LEFT_OUT = (
    "Layer", "Wrapper", "InputLayer", "Pipeline", "FlaxLayer", "JaxLayer", "TFSMLayer", "TorchModuleWrapper",
    "RepeatVector", "STFTSpectrogram", "MelSpectrogram",
)  # fmt: skip


def classes() -> Iterator[type[Any]]:
    """The layers that may be given a sequence with a mask, or make one, each once."""
    seen = set()
    for name in sorted(dir(layers)):
        each = getattr(layers, name)
        if not inspect.isclass(each) or not issubclass(each, layers.Layer) or each in seen:
            continue
        seen.add(each)
        known = each.__name__ in _LEFT_OUT or each.__name__.endswith(("Cell", "Cells"))
        if not known and ".preprocessing" not in each.__module__:
            yield each


def behaviour_of(kind: type[Any], **arguments: Any) -> Behaviour:
    """What one layer does with a mask that it is given."""
    if kind.__name__ in ("Embedding", "Masking", "ReversibleEmbedding"):
        return "makes"
    given = _ARGUMENTS.get(kind.__name__, dict)()
    layer = kind(**{**given, **arguments})
    call = _called(layer, (_STEPS, *[_LENGTH] * _further_axes(kind), _CHANNELS))
    try:
        first, mask = call(0.0)
    except ValueError:
        return "raises"
    second, _ = call(5.0)
    if mask is None:
        return "uses" if np.allclose(first, second, atol=1e-4) else "drops"
    counts = np.asarray(mask)
    if not np.allclose(first[counts], second[counts], atol=1e-4):
        return "mixes and carries"
    alone = _is_alone(call, counts)
    return "each step alone" if alone else "uses and carries"


def _further_axes(kind: type[Any]) -> int:
    """How many axes a layer wants between the steps and the channels, as its name says."""
    axes = next((int(digit) for digit in "123" if f"{digit}D" in kind.__name__), 1)
    return axes - 1 + ("ConvLSTM" in kind.__name__)


def _called(layer: Any, shape: tuple[int, ...]) -> Callable[..., tuple[Any, Any]]:
    """Calls the layer with numbers that differ at the padding alone; returns the result and its mask."""
    values = np.random.default_rng(0).normal(size=(_BATCH, *shape)).astype("float32")
    counts = np.isin(np.arange(_STEPS), _PADDING, invert=True)

    def once(padding: float, training: bool, masked: bool = True) -> tuple[Any, Any]:
        given = values.copy()
        given[:, ~counts] = padding
        x = tf.constant(given)
        if masked:
            keras.src.backend.set_keras_mask(x, tf.constant(np.tile(counts, [_BATCH, 1])))
        listed = [x, x] if type(layer).__name__ in (*_LISTS, *_TWO_ARGUMENTS) else [x]
        options = {"training": training} if "training" in inspect.signature(layer.call).parameters else {}
        result = layer(*listed, **options) if type(layer).__name__ not in _LISTS else layer(listed, **options)
        return result.numpy(), getattr(result, "_keras_mask", None)

    # What draws random numbers does not while it predicts; others are asked as they train. Two draws may be the same.
    first = once(0.0, True, False)[0]
    repeats = all(np.array_equal(first, once(0.0, True, False)[0]) for _ in range(8))

    def call(padding: float, masked: bool = True) -> tuple[Any, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return once(padding, repeats, masked)

    return call


def _is_alone(call: Callable[..., tuple[Any, Any]], counts: Any) -> bool:
    """Whether steps that count are the same without a mask, whatever lies beside them."""
    first, second = (call(padding, masked=False)[0][counts] for padding in (0.0, 5.0))
    return bool(np.allclose(first, second, atol=1e-4))


_SECTIONS: dict[Behaviour, tuple[str, str]] = {
    "makes": (
        "Make a mask",
        "`Embedding`, only with `mask_zero=True`; `Masking`, for steps whose elements all equal its `mask_value`.",
    ),
    "uses and carries": (
        "Use the mask and propagate it",
        "Padding does not affect the unmasked steps. For recurrent layers this holds with `return_sequences=True`; "
        "without it they use the mask and drop it.",
    ),
    "uses": (
        "Use the mask and drop it, because nothing is left to mask",
        "The output has no steps left, or none that padding affects.",
    ),
    "each step alone": (
        "Process each step separately and propagate the mask",
        "They do not use the mask: padding stays in place, and a later layer has to leave it out.",
    ),
    "mixes and carries": (
        "Propagate the mask, but mix padding into the unmasked steps",
        "They do not use the mask either, and compute each step from other steps too. Keras does not warn; if padding "
        "gets a gradient, the report names the layer, with the cause `mask_dropped`. Set padding to zero before the "
        "layer, or use `LayerNormalization`, which normalises each step separately.",
    ),
    "drops": (
        "Drop the mask",
        "The layers after them treat padding as data. Keras warns once; if padding gets a gradient, the report names "
        "the layer, with the cause `mask_dropped`.",
    ),
    "raises": (
        "Use `mask` with another meaning",
        "Their `mask` argument masks entries along `axis`: pass one yourself, or pass `mask=None`.",
    ),
}

_INTRODUCTION = """# Masks

This page shows which layers of Keras make, use, propagate and drop a mask, measured with Keras {version}. Each layer
was called with two batches of sequences that differ only at the masked steps. The results show whether these steps
affect the output, and whether the output still has a mask.

A mask belongs to the tensor that a layer returns. Functions that are not layers drop it, and Keras does not warn:
`x + y`, `keras.ops.mean(x, axis=1)`, `tf.reduce_mean(x, axis=1)`. If padding gets a gradient, the report names the
function, with the cause `mask_dropped`. Nothing is reported if you multiply by the mask, pass it to a layer, or take
the last step of a recurrent layer. For a sum, write `keras.layers.Add()([x, y])`. In a functional model the function is
named without its line, because Keras does not keep it; the layer before it is named too.
"""

_REMEDIES = {
    "`GlobalMaxPooling1D()`": f"`{MASKED_MAXIMUM}`",
    "`Flatten()`": f"`{ZEROS.format(keep='')}` before it",
    '`Conv1D(…, padding="same")`': f"`{ZEROS.format(keep=', ' + FORWARD)}` before it, and "
    "`conv.supports_masking = True` to keep the mask after it",
    "`Lambda(f)` that processes each step separately": f"`keras.layers.Lambda(f, {FORWARD})`",
    "a custom layer that processes each step separately": "`self.supports_masking = True` in its `__init__`",
    "a custom layer that mixes steps": "`def call(self, x, mask=None)` that leaves padding out, and "
    "`compute_mask` that returns the remaining mask",
}
_MENDED = """## What to write instead

For a layer that drops the mask, one of these keeps padding out:

| layer | replacement |
|---|---|
"""


def _public_name(kind: type[Any]) -> str:
    """The name of its class, or the name under which Keras exports it, if that is different."""
    name = kind.__name__
    return name if hasattr(layers, name) else next(each for each in dir(layers) if getattr(layers, each) is kind)


def written() -> str:
    """The page."""
    found: dict[Behaviour, list[str]] = {behaviour: [] for behaviour in _SECTIONS}
    for kind in classes():
        found[behaviour_of(kind)].append(_public_name(kind))
    parts = [_INTRODUCTION.format(version=keras.version())]
    for behaviour, (title, text) in _SECTIONS.items():
        names = ", ".join(f"`{name}`" for name in sorted(found[behaviour]))
        parts.append(f"## {title}\n\n{text}\n\n{names}\n")
    rows = "".join(f"| {layer} | {instead} |\n" for layer, instead in _REMEDIES.items())
    return "\n".join([*parts, _MENDED + rows])


if __name__ == "__main__":
    PAGE.write_text(written())
