# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class SaturationFilter(keras.layers.Layer):
    """Retouching step: raises the saturation by a learned amount."""

    def build(self, shape):
        self.amount = self.add_weight(name="amount", shape=(), initializer=keras.initializers.Constant(0.1))

    def call(self, image):
        hue, saturation, value = tf.unstack(tf.image.rgb_to_hsv(image), axis=-1)
        saturation = saturation + (1.0 - saturation) * tf.sigmoid(self.amount)
        return tf.image.hsv_to_rgb(tf.stack([hue, saturation, value], axis=-1))


def build():
    keras.utils.set_random_seed(38)
    raw = keras.Input((8, 8, 3), name="raw")
    h = keras.layers.Conv2D(6, 3, padding="same", activation="relu", name="denoise1")(raw)
    h = keras.layers.Conv2D(3, 3, padding="same", activation="sigmoid", name="denoise2")(h)
    h = SaturationFilter(name="saturate")(h)
    model = keras.Model(raw, keras.layers.Conv2D(3, 1, name="grade")(h), name="retouch")
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(38)
    x = rng.uniform(size=(4, 8, 8, 3)).astype("float32")
    y = rng.uniform(size=(4, 8, 8, 3)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
