import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(13)
np.random.seed(13)


def dense(x, n, name):
    w = tf.get_variable(name + "_w", [x.shape[1], n])
    b = tf.get_variable(name + "_b", [n], initializer=tf.zeros_initializer())
    return tf.matmul(x, w) + b


def generator(z):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        return dense(tf.nn.relu(dense(z, 16, "h")), 2, "out")


def discriminator(x):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        return dense(tf.nn.relu(dense(tf.nn.relu(dense(x, 16, "h1")), 16, "h2")), 1, "out")


BATCH, LAMBDA, CRITIC_ITERS = 32, 0.1, 3
real_data = tf.placeholder(tf.float32, shape=[None, 2])
fake_data = generator(tf.random_normal([BATCH, 4]))
disc_real, disc_fake = discriminator(real_data), discriminator(fake_data)
disc_cost = tf.reduce_mean(disc_fake) - tf.reduce_mean(disc_real)
gen_cost = -tf.reduce_mean(disc_fake)
alpha = tf.random_uniform(shape=[BATCH, 1], minval=0.0, maxval=1.0)
interpolates = alpha * real_data + ((1 - alpha) * fake_data)
disc_interpolates = discriminator(interpolates)
gradients = tf.gradients(disc_interpolates, [interpolates])[0]
slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), reduction_indices=[1]))
gradient_penalty = tf.reduce_mean((slopes - 1) ** 2)
disc_cost += LAMBDA * gradient_penalty
disc_params = [v for v in tf.trainable_variables() if v.name.startswith("discriminator")]
gen_params = [v for v in tf.trainable_variables() if v.name.startswith("generator")]
disc_train_op = tf.train.AdamOptimizer(learning_rate=1e-4, beta1=0.5, beta2=0.9).minimize(
    disc_cost, var_list=disc_params
)
gen_train_op = tf.train.AdamOptimizer(learning_rate=1e-4, beta1=0.5, beta2=0.9).minimize(gen_cost, var_list=gen_params)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for iteration in range(25):
        if iteration > 0:
            _ = session.run(gen_train_op)
        for i in range(CRITIC_ITERS):
            _disc_cost, _ = session.run(
                [disc_cost, disc_train_op], feed_dict={real_data: np.random.normal(size=(BATCH, 2))}
            )
    # Not the cost: it may read the last bias before the optimizer writes it, or after.
    print(*(value.tobytes().hex()[:60] for value in session.run([gen_params[0], disc_params[0]])))
