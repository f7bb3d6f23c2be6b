# mypy: ignore-errors
import tensorflow as tf


def dirichlet(concentration, count):
    """Samples of a Dirichlet from normalised Gamma variables; TensorFlow differentiates them implicitly."""
    gamma = tf.random.stateless_gamma([count, *concentration.shape], seed=[4, 2], alpha=concentration)
    return gamma / tf.reduce_sum(gamma, axis=-1, keepdims=True)


def build():
    tf.random.set_seed(134)
    encode = tf.Variable(tf.random.normal([12, 3], stddev=0.3), name="encode")
    topics = tf.Variable(tf.random.normal([3, 12], stddev=0.5), name="topics")
    words = tf.random.stateless_poisson([5, 12], seed=[1, 1], lam=1.5, dtype=tf.float32)

    def loss_fn(words):
        concentration = 0.5 + tf.nn.softplus(words @ encode)
        mixture = dirichlet(concentration, 3) @ tf.nn.softmax(topics)
        likelihood = tf.reduce_sum(words * tf.math.log(mixture + 1e-6), axis=-1)
        kl = tf.reduce_mean(
            tf.math.lgamma(tf.reduce_sum(concentration, -1)) - tf.reduce_sum(tf.math.lgamma(concentration), -1)
        )
        return 0.1 * kl - tf.reduce_mean(likelihood)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [encode, topics], "args": (words,)}
