# mypy: ignore-errors
import tensorflow as tf


def spikes(rate, steps):
    """Spike counts of a population with these rates, one row per time step."""
    shape = tf.concat([[steps], tf.shape(rate)], axis=0)
    return tf.random.stateless_poisson(shape, seed=[3, 4], lam=rate, dtype=tf.float32)


def leaky_integrator(counts, leak):
    return tf.scan(lambda potential, now: leak * potential + now, counts, tf.zeros_like(counts[0]))[-1]


def build():
    tf.random.set_seed(34)
    encode = tf.Variable(tf.random.normal([5, 8], stddev=0.4), name="encode")
    leak = tf.Variable(0.8, name="leak")
    decode = tf.Variable(tf.random.normal([8, 2], stddev=0.2), name="decode")
    x, y = tf.random.normal([6, 5]), tf.random.normal([6, 2])

    def loss_fn(x, y):
        rate = tf.nn.softplus(x @ encode)
        return tf.reduce_mean(tf.square(leaky_integrator(spikes(rate, 5), leak) @ decode - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [encode, leak, decode], "args": (x, y)}
