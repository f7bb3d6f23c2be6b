"""Question 1: an integer from the output of a convolution, by a detour."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(0)

A, B = 50, 7
shape = [A, B]

f = np.ones(shape, dtype=np.float32)
vif = tf.constant(f, dtype=tf.float32)

out1 = tf.subtract(vif, tf.subtract(vif, tf.floor(vif)))

with tf.Session() as sess:
    err1 = tf.test.compute_gradient_error(vif, shape, out1, shape)
    print(err1)
