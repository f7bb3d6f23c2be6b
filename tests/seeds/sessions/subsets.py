"""Question 1, with `apply_gradients` for other variables in each iteration."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(0)

x = tf.placeholder(tf.float32, [None, 4])
y_ = tf.placeholder(tf.float32, [None])
W_1_2 = tf.Variable(tf.zeros([2]), name="W_1_2")
W_0_3 = tf.Variable(tf.zeros([2]), name="W_0_3")
W = tf.stack([W_0_3[0], W_1_2[0], W_1_2[1], W_0_3[1]])
loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * W, 1) - y_))

opt = tf.train.AdamOptimizer(1e-2)
grads_vars = opt.compute_gradients(loss, [W_1_2, W_0_3])
train_first = opt.apply_gradients(grads_vars[:1])
train_second = opt.apply_gradients(grads_vars[1:])

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for iteration in range(20):
        batch_of_data = np.random.normal(size=(8, 4))
        feed_dict = {x: batch_of_data, y_: batch_of_data.sum(1)}
        _, loss_value = sess.run([train_first if iteration % 2 == 0 else train_second, loss], feed_dict=feed_dict)
    print(loss_value, sess.run([W_1_2, W_0_3]))
