"""Question 2: the probabilities of a network, rounded to 0 or 1; and what was proposed instead."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)
np.random.seed(0)

x_in = tf.placeholder(tf.float32, [None, 4])
labels = tf.placeholder(tf.float32, [None, 1])


def steep_limits(x):
    differentiable_round = tf.maximum(x - 0.499, 0)
    differentiable_round = differentiable_round * 10000
    return tf.minimum(differentiable_round, 1)


def straight_through(x):
    x_rounded_NOT_differentiable = tf.round(x)
    return x - tf.stop_gradient(x - x_rounded_NOT_differentiable)


def steep_sigmoid(x):
    slope = 1000
    center = 0.5
    e = tf.exp(slope * (x - center))
    return e / (e + 1)


ROUNDINGS = {
    "round": tf.round,
    "sine": lambda x: x - tf.sin(2 * np.pi * x) / (2 * np.pi),
    "limits": steep_limits,
    "straight": straight_through,
    "sigmoid": steep_sigmoid,
}


def model(name):
    with tf.variable_scope(name):
        hidden = tf.nn.relu(tf.matmul(x_in, tf.get_variable("w1", [4, 8])) + tf.get_variable("b1", [8]))
        probabilities = tf.nn.sigmoid(tf.matmul(hidden, tf.get_variable("w2", [8, 1])))
        return tf.reduce_mean(tf.square(ROUNDINGS[name](probabilities) - labels))


round_loss = model("round")
train_round = tf.train.AdamOptimizer(0.01).minimize(round_loss)
sine_loss = model("sine")
train_sine = tf.train.AdamOptimizer(0.01).minimize(sine_loss)
limits_loss = model("limits")
train_limits = tf.train.AdamOptimizer(0.01).minimize(limits_loss)
straight_loss = model("straight")
train_straight = tf.train.AdamOptimizer(0.01).minimize(straight_loss)
sigmoid_loss = model("sigmoid")
train_sigmoid = tf.train.AdamOptimizer(0.01).minimize(sigmoid_loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(30):
        data = np.random.normal(size=(32, 4))
        feed_dict = {x_in: data, labels: (data.sum(1, keepdims=True) > 0).astype(float)}
        sess.run([train_round, train_sine, train_limits, train_straight, train_sigmoid], feed_dict=feed_dict)
    print(sess.run([round_loss, sine_loss, limits_loss, straight_loss, sigmoid_loss], feed_dict=feed_dict))
