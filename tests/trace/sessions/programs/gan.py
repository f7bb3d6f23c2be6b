import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(5)
np.random.seed(5)
image_dim, gen_hidden_dim, disc_hidden_dim, noise_dim = 36, 24, 24, 8


def glorot_init(shape):
    return tf.random_normal(shape=shape, stddev=1.0 / tf.sqrt(shape[0] / 2.0))


weights = {
    "gen_hidden1": tf.Variable(glorot_init([noise_dim, gen_hidden_dim])),
    "gen_out": tf.Variable(glorot_init([gen_hidden_dim, image_dim])),
    "disc_hidden1": tf.Variable(glorot_init([image_dim, disc_hidden_dim])),
    "disc_out": tf.Variable(glorot_init([disc_hidden_dim, 1])),
}


def generator(x):
    hidden_layer = tf.nn.relu(tf.matmul(x, weights["gen_hidden1"]))
    return tf.nn.sigmoid(tf.matmul(hidden_layer, weights["gen_out"]))


def discriminator(x):
    hidden_layer = tf.nn.relu(tf.matmul(x, weights["disc_hidden1"]))
    return tf.nn.sigmoid(tf.matmul(hidden_layer, weights["disc_out"]))


gen_input = tf.placeholder(tf.float32, shape=[None, noise_dim], name="input_noise")
disc_input = tf.placeholder(tf.float32, shape=[None, image_dim], name="disc_input")
gen_sample = generator(gen_input)
disc_real = discriminator(disc_input)
disc_fake = discriminator(gen_sample)
gen_loss = -tf.reduce_mean(tf.log(disc_fake))
disc_loss = -tf.reduce_mean(tf.log(disc_real) + tf.log(1.0 - disc_fake))
gen_vars = [weights["gen_hidden1"], weights["gen_out"]]
disc_vars = [weights["disc_hidden1"], weights["disc_out"]]
train_gen = tf.train.AdamOptimizer(learning_rate=0.002).minimize(gen_loss, var_list=gen_vars)
train_disc = tf.train.AdamOptimizer(learning_rate=0.002).minimize(disc_loss, var_list=disc_vars)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(1, 41):
        batch_x = np.random.rand(32, image_dim)
        z = np.random.uniform(-1.0, 1.0, size=[32, noise_dim])
        # One after the other: two updates in one run race for the variables, with any outcome.
        _, dl = sess.run([train_disc, disc_loss], feed_dict={disc_input: batch_x, gen_input: z})
        _, gl = sess.run([train_gen, gen_loss], feed_dict={gen_input: z})
        if i % 10 == 0:
            print("Step %i: Generator Loss: %s, Discriminator Loss: %s" % (i, float(gl).hex(), float(dl).hex()))
    print(sess.run(gen_sample, {gen_input: z}).tobytes().hex()[:100])
