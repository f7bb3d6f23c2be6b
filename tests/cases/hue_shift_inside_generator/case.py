# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class HueShift(keras.layers.Layer):
    """Consistency augmentation between generator and critic."""

    def call(self, image, training=False):
        return tf.image.adjust_hue(image, 0.08) if training else image


def build():
    keras.utils.set_random_seed(58)
    noise = keras.Input((4,), name="noise")
    h = keras.layers.Dense(48, activation="relu", name="project")(noise)
    h = keras.layers.Reshape((4, 4, 3), name="grid")(h)
    fake = keras.layers.Conv2DTranspose(3, 4, strides=2, padding="same", activation="sigmoid", name="paint")(h)
    seen = HueShift(name="augment")(fake)
    h = keras.layers.Conv2D(6, 3, strides=2, activation="leaky_relu", name="critic1")(seen)
    score = keras.layers.Dense(1, name="critic2")(keras.layers.Flatten(name="flat")(h))
    model = keras.Model(noise, score, name="gan")
    model.compile(keras.optimizers.Adam(2e-4, beta_1=0.5), loss=keras.losses.BinaryCrossentropy(from_logits=True))
    rng = np.random.default_rng(58)
    x = rng.normal(size=(6, 4)).astype("float32")
    y = np.ones((6, 1), "float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
