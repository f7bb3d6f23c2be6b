# mypy: ignore-errors
import keras
import numpy as np
from keras import layers, ops


class Focal(keras.losses.Loss):
    def __init__(self, gamma=0.5, alpha=0.5, **kw):
        super().__init__(**kw)
        self.gamma, self.alpha = gamma, alpha

    def modulator(self, y_true, p):
        miss = ops.where(y_true > 0.5, 1.0 - p, p)
        return ops.power(miss, self.gamma)

    def call(self, y_true, y_pred):
        p = ops.clip(y_pred, 1e-7, 1.0)
        hit = ops.where(y_true > 0.5, p, 1.0 - 0.999 * p)
        return ops.mean(-self.alpha * self.modulator(y_true, p) * ops.log(hit), axis=-1)


def build():
    keras.utils.set_random_seed(65)
    boxes = keras.Input((10, 6), name="boxes")
    h = layers.Dense(8, activation="relu", name="shared")(boxes)
    h = layers.Dense(2, name="logits")(h)
    out = layers.Activation("sigmoid", name="probability")(h)
    model = keras.Model(boxes, out)
    model.compile("adam", loss=Focal())
    rng = np.random.default_rng(65)
    x = rng.normal(size=(4, 10, 6)).astype("float32")
    x[0, 0] *= 400.0  # an easy anchor
    y = rng.integers(0, 2, size=(4, 10, 2)).astype("float32")
    sure = model.predict(x, verbose=0)
    y[sure == 1.0] = 1.0
    assert (sure == 1.0).any()
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
