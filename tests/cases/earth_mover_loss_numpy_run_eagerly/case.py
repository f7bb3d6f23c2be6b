# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def sorted_samples(values):
    return np.sort(values.numpy(), axis=0)


def earth_mover(y_true, y_pred):
    """Wasserstein distance of the two batches' distributions."""
    gap = sorted_samples(y_true) - sorted_samples(y_pred)
    return tf.constant(np.abs(gap).mean(), tf.float32)


def build():
    keras.utils.set_random_seed(74)
    noise = keras.Input((3,), name="noise")
    trunk = keras.layers.Dense(12, activation="relu", name="trunk")(noise)
    sample = keras.layers.Dense(1, name="sample")(trunk)
    moment = keras.layers.Dense(1, name="moment")(trunk)
    model = keras.Model(noise, [sample, moment], name="sampler")
    model.compile("adam", loss=[earth_mover, "mse"], loss_weights=[1.0, 0.2], run_eagerly=True)
    rng = np.random.default_rng(74)
    x = rng.normal(size=(16, 3)).astype("float32")
    y = [rng.gamma(2.0, size=(16, 1)).astype("float32"), (x**2).mean(1, keepdims=True)]
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
