# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class ContrastiveHead(keras.layers.Layer):
    """Cosine similarities of both towers times a learned inverse temperature."""

    def build(self, shapes):
        self.log_scale = self.add_weight(name="log_scale", shape=(), initializer=keras.initializers.Constant(1.0))
        self.scale = tf.exp(self.log_scale)

    def call(self, towers):
        image, text = (tf.math.l2_normalize(t, axis=-1, epsilon=1e-6) for t in towers)
        return self.scale * tf.matmul(image, text, transpose_b=True)

    def compute_output_shape(self, shapes):
        return (shapes[0][0], shapes[1][0])


class Pairs(keras.losses.Loss):
    def call(self, y_true, logits):
        along = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(y_true, tf.int32), logits=logits)
        down = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.cast(y_true, tf.int32), logits=tf.transpose(logits)
        )
        return 0.5 * (along + down)


def build():
    keras.utils.set_random_seed(80)
    image, text = keras.Input((10,), name="image"), keras.Input((7,), name="text")
    a = keras.layers.Dense(6, name="image_tower")(image)
    b = keras.layers.Dense(6, name="text_tower")(text)
    model = keras.Model([image, text], ContrastiveHead(name="clip")([a, b]))
    model.compile("adam", loss=Pairs())
    rng = np.random.default_rng(80)
    x = (rng.normal(size=(8, 10)).astype("float32"), rng.normal(size=(8, 7)).astype("float32"))
    return {"kind": "keras", "model": model, "x": x, "y": np.arange(8), "fit_kwargs": {"batch_size": 8}}
