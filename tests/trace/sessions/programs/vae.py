import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(12)
np.random.seed(12)
image_dim, hidden_dim, latent_dim = 30, 16, 2


def glorot_init(shape):
    return tf.random_normal(shape=shape, stddev=1.0 / tf.sqrt(shape[0] / 2.0))


weights = {
    k: tf.Variable(glorot_init(s))
    for k, s in dict(
        encoder_h1=[image_dim, hidden_dim],
        z_mean=[hidden_dim, latent_dim],
        z_std=[hidden_dim, latent_dim],
        decoder_h1=[latent_dim, hidden_dim],
        decoder_out=[hidden_dim, image_dim],
    ).items()
}
biases = {
    k: tf.Variable(glorot_init([s]))
    for k, s in dict(
        encoder_b1=hidden_dim, z_mean=latent_dim, z_std=latent_dim, decoder_b1=hidden_dim, decoder_out=image_dim
    ).items()
}
input_image = tf.placeholder(tf.float32, shape=[None, image_dim])
encoder = tf.nn.tanh(tf.matmul(input_image, weights["encoder_h1"]) + biases["encoder_b1"])
z_mean = tf.matmul(encoder, weights["z_mean"]) + biases["z_mean"]
z_std = tf.matmul(encoder, weights["z_std"]) + biases["z_std"]
eps = tf.random_normal(tf.shape(z_std), dtype=tf.float32, mean=0.0, stddev=1.0, name="epsilon")
z = z_mean + tf.exp(z_std / 2) * eps
decoder = tf.nn.tanh(tf.matmul(z, weights["decoder_h1"]) + biases["decoder_b1"])
decoder = tf.nn.sigmoid(tf.matmul(decoder, weights["decoder_out"]) + biases["decoder_out"])


def vae_loss(x_reconstructed, x_true):
    encode_decode_loss = x_true * tf.log(1e-10 + x_reconstructed) + (1 - x_true) * tf.log(1e-10 + 1 - x_reconstructed)
    encode_decode_loss = -tf.reduce_sum(encode_decode_loss, 1)
    kl_div_loss = 1 + z_std - tf.square(z_mean) - tf.exp(z_std)
    kl_div_loss = -0.5 * tf.reduce_sum(kl_div_loss, 1)
    return tf.reduce_mean(encode_decode_loss + kl_div_loss)


loss_op = vae_loss(decoder, input_image)
optimizer = tf.train.RMSPropOptimizer(learning_rate=0.001)
train_op = optimizer.minimize(loss_op)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(1, 41):
        feed_dict = {input_image: np.random.rand(32, image_dim)}
        _, l = sess.run([train_op, loss_op], feed_dict=feed_dict)
    print(float(l).hex())
