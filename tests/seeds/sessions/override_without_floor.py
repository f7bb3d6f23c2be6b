"""Question 1: a map for `Floor` around code without a floor, which was taken before it."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(0)
tf.set_random_seed(0)

x = tf.placeholder(tf.float32, [None, 3])
weights = tf.get_variable("weights", [3, 4])
SomeOtherVal = tf.get_variable("SomeOtherVal", [], initializer=tf.ones_initializer())
SomeVals = tf.floor(tf.matmul(x, weights) * 10.0)


def scaled_mean():
    G = tf.get_default_graph()
    with G.gradient_override_map({"Floor": "Identity"}):
        return tf.reduce_mean(SomeVals) * SomeOtherVal


cost = tf.square(scaled_mean() - 1.0)
step = tf.train.GradientDescentOptimizer(0.01).minimize(cost)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(25):
        _, c = sess.run([step, cost], feed_dict={x: np.random.rand(16, 3)})
    print(c)
