"""Records the two logs that the mutations of these tests begin with: together they have nearly every kind of record.

    python -m tests.hostile.record_rich

Run again when the log gets new kinds of records. The logs hold no path of anybody's machine.
"""

from __future__ import annotations

import linecache
import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.writer import LogWriter, RecordFile

LOGS = Path(__file__).parent / "logs"

MODEL = """\
import keras
import tensorflow as tf


@tf.custom_gradient
def doubled(x):
    def gradient(dy):
        return 3.0 * dy

    return 2.0 * x, gradient


class Steps(keras.layers.Layer):
    def build(self, shape):
        self.threshold = self.add_weight(name="threshold", shape=(), initializer=keras.initializers.Constant(4.0))
        self.unused = self.add_weight(name="unused", shape=(2,))

    def call(self, x):
        mask = tf.sequence_mask(self.threshold, 6, dtype=tf.float32)
        position = tf.argmax(x, axis=-1)
        x = tf.round(x) + doubled(x) * mask
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 0.9), [0, x])[1] + tf.cast(
            position[:, None], tf.float32
        )


inputs = keras.Input((6,), name="x")
tokens_in = keras.Input((3,), name="tokens_in", dtype="int32")
hidden = keras.layers.Dense(6, activation="relu", kernel_regularizer="l2", name="dense")(inputs)
tokens = keras.layers.Embedding(5, 4, mask_zero=True, name="tokens")(tokens_in)
read = keras.layers.LSTM(3, name="lstm")(keras.layers.Lambda(lambda t: t * 1.0, name="drops_mask")(tokens))
hidden = keras.layers.BatchNormalization(name="norm")(Steps(name="steps")(hidden))
one = keras.layers.Dense(1, activation="sigmoid", name="one")(hidden)
other = keras.layers.Dense(1, name="other", bias_constraint="non_neg")(keras.layers.Concatenate()([hidden, read]))
model = keras.Model([inputs, tokens_in], [one, keras.ops.log(other * other)])
"""


def main() -> None:
    shutil.rmtree(LOGS, ignore_errors=True)
    keras.utils.set_random_seed(0)
    linecache.cache["model.py"] = (len(MODEL), None, MODEL.splitlines(keepends=True), "model.py")
    names: dict[str, Any] = {}
    exec(compile(MODEL, "model.py", "exec"), names)
    model = names["model"]
    optimizer = keras.optimizers.AdamW(1e-3, weight_decay=0.01, clipnorm=1.0)
    model.compile(optimizer, ["binary_crossentropy", "mse"], loss_weights=[1.0, 1e-6])
    x = np.random.default_rng(0).random((40, 6)).astype("float32")
    targets = [(x.sum(1, keepdims=True) > 3).astype("float32"), x[:, :1]]
    x[37, 2] = np.nan
    recorder = tb_gradflow.GradFlowCallback(LOGS / "trained", update_freq=1, terms=True, examples=True)
    t = np.tile(np.array([[1, 2, 0]], "int32"), (40, 1))
    model.fit([x, t], targets, batch_size=16, shuffle=False, epochs=2, verbose=0, callbacks=[recorder])
    w, v = tf.Variable([1.0, 2.0], name="w"), tf.Variable(3.0, name="v")

    def loss(y: Any) -> Any:
        return tf.reduce_sum(names["doubled"](w * y)) + tf.stop_gradient(v) + 1e-9 * tf.reduce_sum(w * w)

    explained = tb_gradflow.explain(loss, args=(tf.constant([1.0, 2.0]),), variables=[w, v])
    assert explained._history is not None
    run: StoredRun = explained._history()._run
    copy(run, LOGS / "explained")
    for path in LOGS.rglob("*tfevents*"):
        path.rename(path.with_name("events.out.tfevents.1700000000.000000000.sample.1.gradflow"))


def copy(run: StoredRun, log_dir: Path) -> None:
    from benchmarks.lengthened import records

    index = run.index()
    with LogWriter(index.session, RecordFile(event_file_path(str(log_dir)))) as writer:
        for number in index.traces:
            writer.write_trace(run.trace(index.session.id, number))
        for record in records(run):
            writer.write_step(record)


if __name__ == "__main__":
    main()
