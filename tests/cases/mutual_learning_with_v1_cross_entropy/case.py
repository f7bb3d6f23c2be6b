# mypy: ignore-errors
import tensorflow as tf


def agreement(logits, teacher_logits):
    """Each network should match the other's opinion."""
    opinion = tf.nn.softmax(teacher_logits / 2.0)
    return tf.reduce_mean(tf.compat.v1.nn.softmax_cross_entropy_with_logits(labels=opinion, logits=logits / 2.0))


def build():
    tf.random.set_seed(122)
    trunk = tf.Variable(tf.random.normal([6, 8], stddev=0.4), name="trunk")
    student = tf.Variable(tf.random.normal([8, 4], stddev=0.4), name="student")
    teacher = tf.Variable(tf.random.normal([8, 4], stddev=0.4), name="teacher")
    prior = tf.Variable(tf.zeros([4]), name="prior")
    x = tf.random.normal([12, 6])

    def loss_fn(x):
        h = tf.nn.gelu(x @ trunk)
        return agreement(h @ student, h @ teacher + prior)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [trunk, student, teacher, prior], "args": (x,)}
