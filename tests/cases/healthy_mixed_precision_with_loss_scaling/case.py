# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(82)
    half = {"dtype": "mixed_float16"}
    image = keras.Input((10, 10, 2), name="image")
    h = keras.layers.Conv2D(6, 3, use_bias=False, name="conv", **half)(image)
    h = keras.layers.BatchNormalization(name="norm", **half)(h)
    h = keras.layers.Activation("relu", name="act", **half)(h)
    h = keras.layers.GlobalAveragePooling2D(name="pool", **half)(h)
    out = keras.layers.Dense(4, activation="softmax", dtype="float32", name="label")(h)
    model = keras.Model(image, out)
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-3), initial_scale=1024.0)
    model.compile(optimizer, loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(82)
    x = rng.normal(size=(8, 10, 10, 2)).astype("float32")
    y = rng.integers(0, 4, size=(8,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
