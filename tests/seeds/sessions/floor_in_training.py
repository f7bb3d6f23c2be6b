"""Question 1: the floor inside a network that trains, as it is and with another gradient."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(0)
tf.set_random_seed(0)


@tf.RegisterGradient("CustomFloor")
def _custom_floor_grad(op, grads):
    return [grads]


def network(x, override):
    with tf.variable_scope("override" if override else "plain"):
        w = tf.get_variable("w", [6, 6])
        conv = tf.nn.relu(tf.matmul(x, w)) * 3.0
        if override:
            with tf.get_default_graph().gradient_override_map({"Floor": "CustomFloor"}):
                floored = tf.floor(conv)
        else:
            floored = tf.floor(conv)
        v = tf.get_variable("v", [6, 1])
        return tf.matmul(floored, v)


x = tf.placeholder(tf.float32, [None, 6])
y = tf.placeholder(tf.float32, [None, 1])
plain_loss = tf.losses.mean_squared_error(y, network(x, False))
override_loss = tf.losses.mean_squared_error(y, network(x, True))
train_plain = tf.train.GradientDescentOptimizer(0.01).minimize(plain_loss)
train_override = tf.train.GradientDescentOptimizer(0.01).minimize(override_loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(30):
        data = np.random.normal(size=(32, 6))
        feed = {x: data, y: data.sum(1, keepdims=True)}
        sess.run([train_plain, train_override], feed_dict=feed)
    print(sess.run([plain_loss, override_loss], feed_dict=feed))
