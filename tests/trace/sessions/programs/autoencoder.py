import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(11)
np.random.seed(11)
X = tf.placeholder("float", [None, 40])


def xavier_init(fan_in, fan_out, constant=1):
    low, high = -constant * np.sqrt(6.0 / (fan_in + fan_out)), constant * np.sqrt(6.0 / (fan_in + fan_out))
    return tf.random_uniform((fan_in, fan_out), minval=low, maxval=high, dtype=tf.float32)


class AdditiveGaussianNoiseAutoencoder:
    def __init__(
        self, n_input, n_hidden, transfer_function=tf.nn.softplus, optimizer=tf.train.AdamOptimizer(), scale=0.1
    ):
        self.scale = tf.placeholder(tf.float32)
        self.training_scale = scale
        self.weights = {"w1": tf.Variable(xavier_init(n_input, n_hidden)), "b1": tf.Variable(tf.zeros([n_hidden]))}
        self.weights["b2"] = tf.Variable(tf.zeros([n_input]))
        self.x = tf.placeholder(tf.float32, [None, n_input])
        self.hidden = transfer_function(
            tf.add(tf.matmul(self.x + scale * tf.random_normal((n_input,)), self.weights["w1"]), self.weights["b1"])
        )
        self.reconstruction = tf.add(tf.matmul(self.hidden, tf.transpose(self.weights["w1"])), self.weights["b2"])
        self.cost = 0.5 * tf.reduce_sum(tf.pow(tf.subtract(self.reconstruction, self.x), 2.0))
        self.optimizer = optimizer.minimize(self.cost)
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())

    def partial_fit(self, X):
        cost, opt = self.sess.run((self.cost, self.optimizer), feed_dict={self.x: X, self.scale: self.training_scale})
        return cost


ae = AdditiveGaussianNoiseAutoencoder(40, 10, optimizer=tf.train.AdamOptimizer(learning_rate=0.001))
for epoch in range(40):
    cost = ae.partial_fit(np.random.rand(16, 40))
print(float(cost).hex())
saver = tf.train.Saver()
saver.save(ae.sess, "./ae")
print(os.path.getsize("ae.meta"), ae.sess.run(ae.weights["w1"]).tobytes().hex()[:100])
