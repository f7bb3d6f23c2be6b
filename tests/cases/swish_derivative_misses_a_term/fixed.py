# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def memory_saving_swish(beta=1.0):
    """Swish that keeps only its input for the backward pass."""

    @tf.custom_gradient
    def swish(x):
        gate = tf.sigmoid(beta * x)

        def grad(dy):
            s = tf.sigmoid(beta * x)
            return dy * (s + beta * x * s * (1.0 - s))

        return x * gate, grad

    return swish


def mbconv(x, width, name):
    h = keras.layers.Conv2D(3 * width, 1, use_bias=False, name=f"{name}_expand")(x)
    h = keras.layers.Activation(memory_saving_swish(1.5), name=f"{name}_act1")(h)
    h = keras.layers.DepthwiseConv2D(3, padding="same", use_bias=False, name=f"{name}_depth")(h)
    h = keras.layers.Activation(memory_saving_swish(1.5), name=f"{name}_act2")(h)
    return keras.layers.Conv2D(width, 1, name=f"{name}_project")(h)


def build():
    keras.utils.set_random_seed(72)
    image = keras.Input((8, 8, 3), name="image")
    h = mbconv(image, 4, "b1")
    h = mbconv(h, 4, "b2")
    h = keras.layers.GlobalAveragePooling2D(name="pool")(h)
    out = keras.layers.Dense(3, name="label")(h)
    model = keras.Model(image, out)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(72)
    x = 2.0 * rng.normal(size=(6, 8, 8, 3)).astype("float32")
    y = rng.integers(0, 3, size=(6,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
