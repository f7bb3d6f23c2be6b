# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class TiedLanguageModel(keras.Model):
    """LSTM language model: the embedding table is also the output matrix; padding is masked."""

    def __init__(self, vocabulary, dim):
        super().__init__(name="tied")
        self.table = keras.layers.Embedding(vocabulary, dim, mask_zero=True, name="table")
        self.reader = keras.layers.LSTM(dim, return_sequences=True, name="reader")
        self.norm = keras.layers.LayerNormalization(name="norm")

    def call(self, ids):
        h = self.norm(self.reader(self.table(ids), mask=self.table.compute_mask(ids)))
        return ops.matmul(h, ops.transpose(self.table.embeddings))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = keras.losses.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
        real = ops.cast(ops.not_equal(y, 0), loss.dtype)
        return ops.sum(loss * real) / ops.maximum(ops.sum(real), 1.0)


def build():
    keras.utils.set_random_seed(81)
    model = TiedLanguageModel(50, 8)
    rng = np.random.default_rng(81)
    ids = rng.integers(1, 12, size=(6, 9)).astype("int32")
    for row, length in enumerate((9, 7, 5, 3, 2, 0)):  # the last sentence is empty
        ids[row, length:] = 0
    x, y = ids[:, :-1], ids[:, 1:]
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
