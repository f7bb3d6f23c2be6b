"""Question 1: elements of a weight that are fixed, which Adam moves all the same."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(0)

x = tf.placeholder(tf.float32, [None, 4])
y_ = tf.placeholder(tf.float32, [None])
MW = tf.placeholder(tf.float32, [4])
W = tf.Variable(tf.zeros([4]), name="W")

masked_W = MW * W + tf.stop_gradient(tf.abs(1 - MW) * W)
loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * masked_W, 1) - y_))

opt = tf.train.AdamOptimizer(1e-5)
grads_vars = opt.compute_gradients(loss, [W])
sess = tf.Session()

batch_of_data = np.random.normal(size=(8, 4))
batch_of_labels = np.random.normal(size=8)

# first iteration:
train_op = opt.apply_gradients(grads_vars)
sess.run(tf.global_variables_initializer())
MW_val = [0, 1, 1, 0]
feed_dict = {MW: MW_val, x: batch_of_data, y_: batch_of_labels}
sess.run(train_op, feed_dict=feed_dict)
print(sess.run(W))

# second iteration
MW_val = [1, 0, 0, 1]
feed_dict = {MW: MW_val, x: batch_of_data, y_: batch_of_labels}
sess.run(opt.apply_gradients(grads_vars), feed_dict=feed_dict)
print(sess.run(W))
