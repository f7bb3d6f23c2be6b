# mypy: ignore-errors
import keras
import numpy as np
from keras import layers, ops


def lateral(x, name):
    return layers.Conv2D(6, 1, padding="same", name=f"{name}_lateral")(x)


def pyramid(c3, c4, c5):
    """Feature pyramid: top-down sums, then one smoothing convolution per level."""
    p5 = lateral(c5, "c5")
    p4 = layers.Add(name="merge4")([lateral(c4, "c4"), layers.UpSampling2D(name="up5")(p5)])
    p3 = layers.Add(name="merge3")([lateral(c3, "c3"), layers.UpSampling2D(name="up4")(p4)])
    smooth = {n: layers.Conv2D(6, 3, padding="same", name=f"{n}_smooth") for n in ("p3", "p4", "p5")}
    return {n: smooth[n](p) for n, p in (("p3", p3), ("p4", p4), ("p5", p5))}


def build():
    keras.utils.set_random_seed(2)
    image = keras.Input((16, 16, 3), name="image")
    c3 = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu", name="c3")(image)
    c4 = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu", name="c4")(c3)
    c5 = layers.Conv2D(10, 3, strides=2, padding="same", activation="relu", name="c5")(c4)
    levels = pyramid(c3, c4, c5)
    head = layers.Conv2D(5, 1, name="box_head")
    outputs = [head(levels[n]) for n in ("p5", "p4", "p4")]
    flat = [layers.Reshape((-1, 5), name=f"flat{i}")(o) for i, o in enumerate(outputs)]
    boxes = layers.Concatenate(axis=1, name="boxes")(flat)
    # all levels are kept as outputs for later inspection
    model = keras.Model(image, {"boxes": boxes, "debug": levels["p3"]}, name="detector")
    model.compile("adam", loss={"boxes": lambda t, p: ops.mean(ops.abs(t - p)), "debug": None})
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4, 16, 16, 3)).astype("float32")
    y = {"boxes": rng.normal(size=(4, 36, 5)).astype("float32"), "debug": np.zeros((4, 8, 8, 6), "float32")}
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
