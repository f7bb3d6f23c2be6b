"""Question 2: the network whose output is the location."""

import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow_probability as tfp

tf.disable_v2_behavior()
tf.set_random_seed(0)
np.random.seed(0)
tfd = tfp.distributions

state = tf.placeholder(tf.float32, [None, 3])
hidden = tf.nn.tanh(tf.matmul(state, tf.get_variable("hidden", [3, 8])))
mu = tf.matmul(hidden, tf.get_variable("mu", [8, 1]))
normal = tfd.Normal(tf.squeeze(mu), scale=0.5)
samples = normal.sample(sample_shape=(1), seed=3)
log_prob = normal.log_prob(samples)
loss = -tf.reduce_mean(log_prob)
train = tf.train.AdamOptimizer(1e-3).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(30):
        _, value = sess.run([train, loss], feed_dict={state: np.random.normal(size=(20, 3))})
    print("loss", value)
