# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(75)
    encode = tf.Variable(tf.random.normal([4, 3], stddev=0.5), name="encode")
    bias = tf.Variable(tf.zeros([3]), name="bias")
    decode = tf.Variable(tf.random.normal([3, 4], stddev=0.5), name="decode")
    x = tf.random.normal([6, 4])

    def loss_fn(x):
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as inner:
            inner.watch(x)
            code = tf.sigmoid(tf.matmul(x, encode) + bias)
        jacobian = inner.batch_jacobian(code, x)
        del inner
        return tf.reduce_mean(tf.square(tf.matmul(code, decode) - x)) + 0.1 * tf.reduce_mean(tf.square(jacobian))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [encode, bias, decode], "args": (x,)}
