# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


def res(x, width, name):
    h = layers.Conv2D(width, 3, padding="same", use_bias=False, name=f"{name}_c1")(x)
    h = layers.Activation("relu")(layers.BatchNormalization(name=f"{name}_bn1")(h))
    h = layers.Conv2D(width, 3, padding="same", use_bias=False, name=f"{name}_c2")(h)
    h = layers.BatchNormalization(name=f"{name}_bn2")(h)
    if x.shape[-1] != width:
        x = layers.Conv2D(width, 1, name=f"{name}_skip")(x)
    return layers.Activation("relu")(layers.Add()([h, x]))


class SAM(keras.Model):
    def __init__(self, net, rho=0.05):
        super().__init__(name="sam")
        self.net, self.rho = net, rho

    def call(self, x, training=False):
        return self.net(x, training=training)

    def train_step(self, data):
        x, y = data
        variables = self.net.trainable_variables
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self.net(x, training=True))
        grads = tape.gradient(loss, variables)
        norm = tf.linalg.global_norm(grads)
        steps = [self.rho * g / (norm + 1e-12) for g in grads]
        for v, e in zip(variables, steps, strict=False):
            v.assign_add(e)
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self.net(x, training=True))
        grads = tape.gradient(loss, variables)
        for v, e in zip(variables, steps, strict=False):
            v.assign_sub(e)
        self.optimizer.apply_gradients(zip(grads, variables, strict=False))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(41)
    image = keras.Input((12, 12, 3))
    h = layers.Conv2D(6, 3, padding="same", activation="relu", name="stem")(image)
    h = layers.AveragePooling2D(2)(res(h, 6, "r1"))
    h = res(h, 8, "r2")
    net = keras.Model(image, layers.Dense(4, name="label")(layers.GlobalAveragePooling2D()(h)), name="net")
    model = SAM(net)
    rng = np.random.default_rng(41)
    x = rng.normal(size=(8, 12, 12, 3)).astype("float32")
    model(x)
    model.compile("sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": rng.integers(0, 4, 8).astype("int32"),
        "fit_kwargs": {"batch_size": 8},
    }
