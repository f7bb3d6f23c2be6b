# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def block(x, name):
    h = layers.LayerNormalization(name=f"{name}_norm1")(x)
    h = layers.MultiHeadAttention(2, 4, bias_initializer="random_normal", name=f"{name}_attention")(h, h)
    x = layers.Add(name=f"{name}_add1")([x, h])
    h = layers.LayerNormalization(name=f"{name}_norm2")(x)
    h = layers.Dense(16, activation="gelu", name=f"{name}_up")(h)
    h = layers.Dense(8, name=f"{name}_down")(h)
    return layers.Add(name=f"{name}_add2")([x, h])


def build():
    keras.utils.set_random_seed(32)
    patches = keras.Input((6, 8), name="patches")
    h = layers.Dense(8, name="embed")(patches)
    for i in range(2):
        h = block(h, f"b{i}")
    out = layers.Dense(3, name="label")(layers.GlobalAveragePooling1D(name="pool")(h))
    model = keras.Model(patches, out)
    model.compile("adamw", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(32)
    x = rng.normal(size=(8, 6, 8)).astype("float32")
    y = rng.integers(0, 3, size=(8,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
