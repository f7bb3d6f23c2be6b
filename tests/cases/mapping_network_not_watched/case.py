# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class StyleGenerator(keras.Model):
    """A mapping network makes styles, a synthesis network paints with them."""

    def __init__(self):
        super().__init__(name="style")
        self.mapping = [keras.layers.Dense(6, activation="leaky_relu", name=f"mapping{i}") for i in range(2)]
        self.synthesis = keras.layers.Dense(10, activation="tanh", name="synthesis")
        self.noise_strength = self.add_weight(name="noise_strength", shape=(), initializer="ones")
        self.canvas = keras.layers.Dense(8, name="canvas")

    def call(self, z):
        for layer in self.mapping:
            z = layer(z)
        h = self.synthesis(z) + self.noise_strength * tf.random.stateless_normal([10], [1, 2])
        return self.canvas(h)

    def watched(self):
        return [*self.synthesis.trainable_variables, self.noise_strength, *self.canvas.trainable_variables]

    def train_step(self, data):
        z, target = data
        with tf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
            for weight in self.watched():
                tape.watch(weight.value)
            picture = self(z, training=True)
            loss = tf.reduce_mean(keras.losses.cosine_similarity(target, picture)) + 1.0
        gradients = [tape.gradient(loss, w.value) for w in self.trainable_variables]
        del tape
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(116)
    model = StyleGenerator()
    rng = np.random.default_rng(116)
    x = rng.normal(size=(8, 4)).astype("float32")
    y = rng.normal(size=(8, 8)).astype("float32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
