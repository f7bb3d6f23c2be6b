# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Translator(keras.Model):
    def __init__(self):
        super().__init__(name="translator")
        self.source = keras.layers.Embedding(15, 6, name="source")
        self.encoder = keras.layers.LSTM(7, return_state=True, name="encoder")
        self.target = keras.layers.Embedding(12, 6, name="target")
        self.decoder = keras.layers.LSTM(7, return_sequences=True, name="decoder")
        self.words = keras.layers.Dense(12, name="words")

    def encode(self, text):
        _, *state = self.encoder(self.source(text))
        return state

    def decode(self, text, state):
        return self.words(self.decoder(self.target(text), initial_state=state))

    def call(self, pair):
        return self.decode(pair[1], self.encode(pair[0]))

    def decoder_loss(self, previous, following, state):
        losses = keras.losses.sparse_categorical_crossentropy(following, self.decode(previous, state), from_logits=True)
        return tf.reduce_mean(losses)

    def train_step(self, data):
        (text, previous), following = data
        state = self.encode(text)
        with tf.GradientTape() as tape:
            loss = self.decoder_loss(previous, following, state)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(114)
    model = Translator()
    rng = np.random.default_rng(114)
    x = (rng.integers(0, 15, size=(6, 5)).astype("int32"), rng.integers(0, 12, size=(6, 4)).astype("int32"))
    y = rng.integers(0, 12, size=(6, 4)).astype("int32")
    model((x[0][:1], x[1][:1]))
    model.compile(keras.optimizers.RMSprop(1e-3))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
