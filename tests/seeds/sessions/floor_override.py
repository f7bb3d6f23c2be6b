"""Question 1: an integer from the output of a convolution, with another gradient of the floor."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import ops

tf.disable_v2_behavior()
np.random.seed(0)


@ops.RegisterGradient("CustomFloor")
def _custom_floor_grad(op, grads):
    return [grads]


A, B = 50, 7
shape = [A, B]

f = np.ones(shape, dtype=np.float32)
vif = tf.constant(f, dtype=tf.float32)

# out1 = tf.subtract(vif, tf.subtract(vif, tf.floor(vif)))
with tf.get_default_graph().gradient_override_map({"Floor": "CustomFloor"}):
    out1 = tf.floor(vif)

with tf.Session() as sess:
    err1 = tf.test.compute_gradient_error(vif, shape, out1, shape)
    print(err1)
