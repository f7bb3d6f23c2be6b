"""Question 1: what `gradient_override_map` does."""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


@tf.RegisterGradient("CustomGrad")
def _const_mul_grad(unused_op, grad):
    return 5.0 * grad


input = tf.Variable([1.0, 2.0, 3.0])

g = tf.get_default_graph()
with g.gradient_override_map({"Identity": "CustomGrad"}):
    output = tf.identity(input, name="Identity")
grad = tf.gradients(output, input)

# output without gradient clipping in the backwards pass for comparison:
output_ori = tf.identity(input)
grad_ori = tf.gradients(output_ori, input)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print("with:", sess.run(grad)[0])
    print("without:", sess.run(grad_ori)[0])
