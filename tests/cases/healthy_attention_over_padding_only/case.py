# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(87)
    tokens = keras.Input((5, 6), name="tokens")
    allowed = keras.Input((5, 5), dtype="bool", name="allowed")
    attention = layers.MultiHeadAttention(2, 3, use_bias=False, name="attention")
    h = layers.LayerNormalization(name="norm")(tokens + attention(tokens, tokens, attention_mask=allowed))
    h = layers.Dense(6, activation="gelu", name="mlp")(h)
    out = layers.Dense(2, name="label")(layers.GlobalAveragePooling1D(name="pool")(h))
    model = keras.Model([tokens, allowed], out)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(87)
    x = rng.normal(size=(4, 5, 6)).astype("float32")
    mask = np.tril(np.ones((4, 5, 5), bool))
    mask[1] = False  # a sample that is padding only
    y = rng.integers(0, 2, size=(4,)).astype("int32")
    return {"kind": "keras", "model": model, "x": [x, mask], "y": y, "fit_kwargs": {"batch_size": 4}}
