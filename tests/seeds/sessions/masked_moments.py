"""Question 1, with the moments of the fixed elements set to zero."""

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

opt = tf.train.AdamOptimizer(1e-2)
grads_vars = opt.compute_gradients(loss, [W])
train_op = opt.apply_gradients(grads_vars)
new_m, new_v = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.float32, [4])
set_moments = [opt.get_slot(W, "m").assign(new_m), opt.get_slot(W, "v").assign(new_v)]

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for iteration in range(20):
        MW_val = np.array([0, 1, 1, 0] if iteration % 2 == 0 else [1, 0, 0, 1])
        batch_of_data = np.random.normal(size=(8, 4))
        batch_of_labels = batch_of_data.sum(1)
        feed_dict = {MW: MW_val, x: batch_of_data, y_: batch_of_labels}
        sess.run(train_op, feed_dict=feed_dict)
        m_vals, v_vals = sess.run([opt.get_slot(W, "m"), opt.get_slot(W, "v")])
        m_vals[MW_val == 1] = 0
        v_vals[MW_val == 1] = 0
        sess.run(set_moments, {new_m: m_vals, new_v: v_vals})
    print(sess.run(W))
