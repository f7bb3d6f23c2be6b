# mypy: ignore-errors
import keras
import numpy as np


def backbone():
    image = keras.Input((12, 12, 1))
    h = image
    for i, width in enumerate((4, 6, 8)):
        h = keras.layers.Conv2D(width, 3, strides=2, padding="same", name=f"block{i}_conv", use_bias=False)(h)
        h = keras.layers.BatchNormalization(name=f"block{i}_bn")(h)
        h = keras.layers.Activation("relu", name=f"block{i}_relu")(h)
    return keras.Model(image, keras.layers.GlobalAveragePooling2D(name="pool")(h), name="backbone")


def fine_tune(base, blocks):
    """Second phase: the last blocks learn too."""
    for layer in base.layers:
        layer.trainable = any(layer.name.startswith(b) for b in blocks)


def build():
    keras.utils.set_random_seed(8)
    base = backbone()
    base.trainable = False  # first phase: only the head learns
    image = keras.Input((12, 12, 1), name="image")
    out = keras.layers.Dense(3, activation="softmax", name="head")(base(image, training=False))
    model = keras.Model(image, out, name="classifier")
    fine_tune(base, ("block1", "block2"))
    model.compile(keras.optimizers.Adam(1e-5), loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(8)
    x = rng.normal(size=(6, 12, 12, 1)).astype("float32")
    y = rng.integers(0, 3, size=(6,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
