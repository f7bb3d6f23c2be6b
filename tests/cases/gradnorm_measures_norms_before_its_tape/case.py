# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class GradNorm(keras.Model):
    def __init__(self, tasks=3):
        super().__init__(name="multitask")
        self.trunk = keras.Sequential(
            [layers.Dense(16, activation="relu", name="t1"), layers.Dense(12, activation="relu", name="t2")],
            name="trunk",
        )
        self.shared = layers.Dense(8, activation="tanh", name="shared")
        self.heads = [layers.Dense(1, name=f"task{i}") for i in range(tasks)]
        self.task_weights = self.add_weight(name="task_weights", shape=(tasks,), initializer="ones")

    def call(self, x):
        h = self.shared(self.trunk(x))
        return tf.concat([head(h) for head in self.heads], axis=1)

    def train_step(self, data):
        x, y = data
        network = [v for v in self.trainable_variables if v is not self.task_weights]
        with tf.GradientTape(persistent=True) as tape:
            losses = tf.unstack(tf.reduce_mean(tf.square(self(x, training=True) - y), axis=0))
            weighted = [w * each for w, each in zip(tf.unstack(self.task_weights), losses, strict=False)]
            total = tf.add_n(weighted)
        last = self.shared.kernel.value
        norms = tf.stack([tf.norm(tape.gradient(each, last)) for each in weighted])
        grads = tape.gradient(total, network)
        with tf.GradientTape() as second:
            target = tf.stop_gradient(tf.reduce_mean(norms))
            balance = tf.reduce_sum(tf.abs(norms - target))
        weight_grads = second.gradient(balance, [self.task_weights])
        pairs = [
            (g, v) for g, v in zip(grads + weight_grads, [*network, self.task_weights], strict=False) if g is not None
        ]
        self.optimizer.apply_gradients(pairs)
        self.task_weights.assign(3.0 * self.task_weights / tf.reduce_sum(self.task_weights))
        return {"loss": total, "balance": balance}


def build():
    keras.utils.set_random_seed(13)
    rng = np.random.default_rng(13)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = rng.normal(size=(16, 3)).astype("float32") * np.array([1, 10, 0.1], "float32")
    model = GradNorm()
    model(x)
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
