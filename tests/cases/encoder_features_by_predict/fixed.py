# mypy: ignore-errors
import keras
import tensorflow as tf


class TwoStage:
    """Classifier on top of an encoder, both of which should be fine-tuned."""

    def __init__(self):
        self.encoder = keras.Sequential(
            [
                keras.Input((8,)),
                keras.layers.Dense(10, activation="relu", name="e1"),
                keras.layers.Dense(5, activation="tanh", name="e2"),
            ],
            name="encoder",
        )
        self.head = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, name="logits")], name="head")

    def loss(self, x, y):
        logits = self.head(self.encoder(x, training=True), training=True)
        return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))


def build():
    keras.utils.set_random_seed(73)
    model = TwoStage()
    x, y = tf.random.normal([12, 8]), tf.range(12) % 3
    variables = model.encoder.trainable_variables + model.head.trainable_variables
    return {"kind": "function", "loss_fn": model.loss, "variables": variables, "args": (x, y)}
