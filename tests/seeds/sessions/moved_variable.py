"""Question 1: the gradient at another place than the variable's value."""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)


def some_function(x):
    return tf.reduce_sum(x**3)


a = tf.Variable([1.0, 2.0, 3.0])
delta = tf.random_normal([3])
b = some_function(a)
grad = tf.gradients(b, a)
grad_delta = tf.gradients(b, a + delta)
print(grad, grad_delta)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(grad))
