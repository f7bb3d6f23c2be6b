# mypy: ignore-errors
import keras
import numpy as np


def build():
    """Texts of several lengths: the embedding masks the padding, which the convolution is given as zeros."""
    keras.utils.set_random_seed(17)
    words = keras.Input((12,), dtype="int32")
    hidden = keras.layers.Embedding(40, 8, mask_zero=True, name="embedding")(words)
    hidden = keras.layers.Lambda(
        lambda x, mask=None: x * keras.ops.cast(mask[..., None], x.dtype),
        output_shape=lambda shape: shape,
        mask=lambda inputs, mask=None: mask,
    )(hidden)
    windows = keras.layers.Conv1D(6, 3, padding="same", activation="tanh", name="windows")
    windows.supports_masking = True
    hidden = keras.layers.GlobalAveragePooling1D(name="average")(windows(hidden))
    model = keras.Model(words, keras.layers.Dense(1, name="score")(hidden), name="texts")
    model.compile(keras.optimizers.Adam(1e-2), "mse")

    rng = np.random.default_rng(17)
    x = rng.integers(1, 40, size=(32, 12)).astype("int32")
    for row, length in zip(x, rng.integers(4, 12, size=32), strict=True):
        row[length:] = 0
    y = (x > 20).mean(1, keepdims=True).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
