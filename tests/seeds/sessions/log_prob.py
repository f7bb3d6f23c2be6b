"""Question 2: the gradient of a sample's own density is always zero."""

import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow_probability as tfp

tf.disable_v2_behavior()
tfd = tfp.distributions


def get_log_prob(mu, std):
    extracted_location = tf.squeeze(mu)
    normal = tfd.Normal(extracted_location, scale=std)
    samples = normal.sample(sample_shape=(1))
    log_prob = normal.log_prob(samples)
    return log_prob


const = tf.constant([0.1], dtype=np.float32)
log_prob = get_log_prob(const, 0.01)
grads = tf.gradients(log_prob, const)
with tf.Session() as sess:
    gradients = sess.run([grads])
    print("gradients", gradients)
