"""Question 0, with the sigmoid of the answer."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)
np.random.seed(0)


def per_kernel_step_filter(input, weight_param=6, trainable=True):
    input_shape = input.get_shape().as_list()

    weight_param_v = tf.Variable(np.full((input_shape[-1]), weight_param), dtype=tf.float32, trainable=trainable)
    weight_param_v_c = tf.clip_by_value(weight_param_v, 0, input_shape[-2])
    kernel_filter = tf.transpose(tf.sigmoid(weight_param_v_c[:, None] - tf.range(input_shape[-2] * 1.0)))
    kernel_filter = tf.reshape(kernel_filter, tf.concat([(1, 1), kernel_filter.get_shape()], 0))

    output = input * kernel_filter
    tf.summary.histogram("weight_param histogram", weight_param_v)

    return output


x = tf.placeholder(tf.float32, [None, 1, 24, 1])
y = tf.placeholder(tf.float32, [None, 1])

kernel = tf.get_variable("kernel", [1, 5, 1, 4])
features = tf.nn.relu(tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME"))
filtered = per_kernel_step_filter(features)
flat = tf.reshape(filtered, [-1, 24 * 4])
weights = tf.get_variable("weights", [24 * 4, 1])
biases = tf.get_variable("biases", [1], initializer=tf.zeros_initializer())
prediction = tf.matmul(flat, weights) + biases

loss = tf.reduce_mean(tf.square(prediction - y))
opt = tf.train.AdamOptimizer(0.01)
grads_and_vars = opt.compute_gradients(loss)
for grad, var in grads_and_vars:
    assert grad is not None, var
train_op = opt.apply_gradients(grads_and_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(60):
        batch = np.random.normal(size=(16, 1, 24, 1))
        target = batch[:, 0, :10, 0].sum(1, keepdims=True)
        sess.run(train_op, feed_dict={x: batch, y: target})
    print(sess.run([loss, tf.trainable_variables()[1]], feed_dict={x: batch, y: target}))
