# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Tagger(keras.Model):
    """Fine-tunes a recurrent backbone; the memory of its recording was saved a little too well."""

    def __init__(self):
        super().__init__(name="tagger")
        self.embed = keras.layers.Embedding(20, 6, mask_zero=True, name="embed")
        self.backbone = keras.layers.GRU(8, return_sequences=True, name="backbone")
        self.attend = keras.layers.Dense(1, use_bias=False, name="attend")
        self.tags = keras.layers.Dense(3, name="tags")

    def call(self, tokens):
        return self.head(self.features(tokens))

    def features(self, tokens):
        return self.backbone(self.embed(tokens))

    def head(self, h):
        return self.tags(tf.reduce_sum(tf.nn.softmax(self.attend(h), axis=1) * h, axis=1))

    def train_step(self, data):
        tokens, tag = data
        with tf.GradientTape() as tape:
            with tape.stop_recording():
                h = self.features(tokens)
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(tag, self.head(h), from_logits=True))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(112)
    model = Tagger()
    rng = np.random.default_rng(112)
    x = rng.integers(1, 20, size=(8, 6)).astype("int32")
    y = rng.integers(0, 3, size=(8,))
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
