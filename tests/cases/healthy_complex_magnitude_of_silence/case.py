# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(86)
    filters = tf.Variable(tf.random.normal([9, 1, 3], stddev=0.4), name="filters")
    mix = tf.Variable(tf.random.normal([3, 1], stddev=0.4), name="mix")
    floor = tf.Variable(0.1, name="floor")
    wave = tf.random.normal([2, 128])
    gate = tf.concat([tf.ones([2, 64]), tf.zeros([2, 64])], axis=1)
    clean = tf.random.normal([2, 128])

    def magnitude(w):
        return tf.abs(tf.signal.stft(w, frame_length=32, frame_step=16))

    def loss_fn(wave, clean):
        h = tf.nn.elu(tf.nn.conv1d(wave[..., None], filters, 1, "SAME"))
        estimate = gate * tf.squeeze(h @ mix, -1)
        error = magnitude(estimate) + tf.abs(floor) - magnitude(clean)
        level = tf.where(error > 0, tf.sqrt(tf.where(error > 0, error, 1.0)), -error)
        return tf.reduce_mean(level) + tf.norm(estimate)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [filters, mix, floor], "args": (wave, clean)}
