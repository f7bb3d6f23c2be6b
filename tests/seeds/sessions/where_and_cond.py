"""Questions 1 and 4: a loss with `tf.where`, and a graph with `tf.cond`."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)
np.random.seed(0)

x = tf.placeholder(tf.float32, [None, 3])
y = tf.placeholder(tf.float32, [None, 1])
training = tf.placeholder(tf.bool, [])

w = tf.get_variable("w", [3, 1])
first = tf.get_variable("first", [1])
second = tf.get_variable("second", [1])
prediction = tf.matmul(x, w)
prediction = tf.cond(training, lambda: prediction * first, lambda: prediction * second)

error = prediction - y
loss = tf.reduce_mean(tf.where(tf.abs(error) < 1.0, 0.5 * tf.square(error), tf.abs(error) - 0.5))
train_step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for i in range(40):
    data = np.random.normal(size=(10, 3))
    train_step.run(feed_dict={x: data, y: data.sum(1, keepdims=True), training: True})
print(loss.eval(feed_dict={x: data, y: data.sum(1, keepdims=True), training: True}), second.eval())
