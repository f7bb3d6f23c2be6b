# mypy: ignore-errors
import keras
import numpy as np
from keras import layers, ops


class MinibatchStd(layers.Layer):
    """Appends one channel: the mean over everything of the standard deviation over the batch."""

    def call(self, x):
        std = ops.std(x, axis=0, keepdims=True)
        level = ops.mean(std)
        shape = ops.shape(x)
        extra = ops.broadcast_to(level, (shape[0], shape[1], shape[2], 1))
        return ops.concatenate([x, ops.cast(extra, x.dtype)], axis=-1)

    def compute_output_shape(self, shape):
        return (*shape[:-1], shape[-1] + 1)


def build():
    keras.utils.set_random_seed(50)
    image = keras.Input((8, 8, 1), name="image")
    h = layers.Conv2D(4, 3, strides=2, padding="same", name="d1")(image)
    h = layers.LeakyReLU(0.2, name="a1")(h)
    h = MinibatchStd(name="stddev")(h)
    h = layers.Conv2D(6, 3, strides=2, padding="same", name="d2")(h)
    h = layers.LeakyReLU(0.2, name="a2")(h)
    out = layers.Dense(1, name="verdict")(layers.Flatten(name="flat")(h))
    model = keras.Model(image, out)
    model.compile("adam", loss=keras.losses.BinaryCrossentropy(from_logits=True))
    rng = np.random.default_rng(50)
    x = rng.normal(size=(4, 8, 8, 1)).astype("float32")
    x[:, :3, :3] = 0.0  # black corner in every image
    y = np.array([[0.0], [1.0], [0.0], [1.0]], "float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
