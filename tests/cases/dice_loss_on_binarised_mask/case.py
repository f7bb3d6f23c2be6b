# mypy: ignore-errors
import keras
import numpy as np


class DiceLoss(keras.losses.Loss):
    def binarise(self, probability):
        return keras.ops.where(probability > 0.5, 1.0, 0.0)

    def call(self, y_true, y_pred):
        mask = self.binarise(y_pred)
        overlap = keras.ops.sum(y_true * mask, axis=(1, 2, 3))
        total = keras.ops.sum(y_true, axis=(1, 2, 3)) + keras.ops.sum(mask, axis=(1, 2, 3))
        return 1.0 - (2.0 * overlap + 1.0) / (total + 1.0)


def unet():
    image = keras.Input((8, 8, 1), name="image")
    down = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="down1")(image)
    deep = keras.layers.MaxPooling2D(name="pool")(down)
    deep = keras.layers.Conv2D(8, 3, padding="same", activation="relu", name="bottom")(deep)
    up = keras.layers.Conv2DTranspose(4, 2, strides=2, name="up1")(deep)
    both = keras.layers.Concatenate(name="skip")([down, up])
    both = keras.layers.Conv2D(4, 3, padding="same", activation="relu", name="refine")(both)
    return keras.Model(image, keras.layers.Conv2D(1, 1, activation="sigmoid", name="mask")(both), name="unet")


def build():
    keras.utils.set_random_seed(17)
    model = unet()
    model.compile(keras.optimizers.Adam(1e-3), loss=DiceLoss())
    rng = np.random.default_rng(17)
    x = rng.normal(size=(4, 8, 8, 1)).astype("float32")
    y = (x > 0.3).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
