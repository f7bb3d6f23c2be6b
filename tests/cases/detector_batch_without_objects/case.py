# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def yolo_loss(y_true, y_pred):
    """Objectness everywhere; box and class only where an object is."""
    there = y_true[..., :1]
    objectness = tf.nn.sigmoid_cross_entropy_with_logits(there, y_pred[..., :1])
    box = tf.square(y_true[..., 1:5] - tf.sigmoid(y_pred[..., 1:5]))
    label = tf.nn.sigmoid_cross_entropy_with_logits(y_true[..., 5:], y_pred[..., 5:])
    count = tf.reduce_sum(there)
    per_object = tf.math.divide_no_nan(tf.reduce_sum(there * box) + tf.reduce_sum(there * label), count)
    return tf.reduce_mean(objectness) + 5.0 * per_object


def build():
    keras.utils.set_random_seed(30)
    image = keras.Input((16, 16, 3), name="image")
    h = keras.layers.Conv2D(6, 3, strides=2, activation="silu", padding="same", name="c1")(image)
    h = keras.layers.Conv2D(8, 3, strides=2, activation="silu", padding="same", name="c2")(h)
    parts = [keras.layers.Conv2D(n, 1, name=name)(h) for name, n in (("objectness", 1), ("boxes", 4), ("labels", 3))]
    model = keras.Model(image, keras.layers.Concatenate(name="grid")(parts))
    model.compile("adam", loss=yolo_loss)
    rng = np.random.default_rng(30)
    x = rng.normal(size=(4, 16, 16, 3)).astype("float32")
    y = np.zeros((4, 4, 4, 8), "float32")  # street at night: nothing in any image
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
