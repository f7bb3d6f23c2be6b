# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def pretrained():
    """A network as it comes out of a checkpoint; its last layer is an activation."""
    return keras.Sequential(
        [
            keras.Input((10, 10, 3)),
            layers.Conv2D(4, 3, activation="relu", name="conv1"),
            layers.Conv2D(6, 3, activation="relu", name="conv2"),
            layers.GlobalAveragePooling2D(name="pool"),
            layers.Dense(8, activation="relu", name="fc"),
            layers.Dense(3, name="logits"),
            layers.Activation("softmax", name="probabilities"),
        ],
        name="pretrained",
    )


def freeze_all_but_the_head(model):
    for layer in model.layers[:-1]:
        layer.trainable = False
    return model


def build():
    keras.utils.set_random_seed(88)
    model = freeze_all_but_the_head(pretrained())
    model.compile("adam", loss="categorical_crossentropy")
    rng = np.random.default_rng(88)
    x = rng.normal(size=(6, 10, 10, 3)).astype("float32")
    y = np.eye(3, dtype="float32")[rng.integers(0, 3, size=(6,))]
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
