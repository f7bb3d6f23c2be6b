# mypy: ignore-errors
import keras
import numpy as np


def direction(series):
    return keras.ops.sign(series[:, 1:] - series[:, :-1])


def directional_loss(y_true, y_pred):
    """Share of the days on which the forecast moves the wrong way."""
    agreement = direction(y_true) * direction(y_pred)
    return keras.ops.mean(1.0 - agreement, axis=-1) / 2.0


def build():
    keras.utils.set_random_seed(37)
    history = keras.Input((10, 4), name="history")
    h = keras.layers.LSTM(8, return_sequences=True, name="lstm1")(history)
    h = keras.layers.LSTM(6, name="lstm2")(h)
    model = keras.Model(history, keras.layers.Dense(5, name="forecast")(h))
    model.compile(keras.optimizers.RMSprop(1e-3), loss=directional_loss)
    rng = np.random.default_rng(37)
    x = rng.normal(size=(8, 10, 4)).astype("float32")
    y = np.cumsum(rng.normal(size=(8, 5)), axis=1).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
