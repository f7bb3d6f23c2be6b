import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(18)
tf.set_random_seed(18)


def batch_norm(x, n_out, phase_train, scope):
    with tf.variable_scope(scope):
        beta = tf.Variable(tf.constant(0.0, shape=[n_out]), name="beta", trainable=True)
        gamma = tf.Variable(tf.constant(1.0, shape=[n_out]), name="gamma", trainable=True)
        batch_mean, batch_var = tf.nn.moments(x, [0, 1, 2], name="moments")
        ema = tf.train.ExponentialMovingAverage(decay=0.5)

        def mean_var_with_update():
            ema_apply_op = ema.apply([batch_mean, batch_var])
            with tf.control_dependencies([ema_apply_op]):
                return tf.identity(batch_mean), tf.identity(batch_var)

        mean, var = tf.cond(
            phase_train, mean_var_with_update, lambda: (ema.average(batch_mean), ema.average(batch_var))
        )
        return tf.nn.batch_normalization(x, mean, var, beta, gamma, 1e-3)


x = tf.placeholder(tf.float32, [None, 8, 8, 1])
y = tf.placeholder(tf.int64, [None])
phase = tf.placeholder(tf.bool, name="phase_train")
c = tf.nn.conv2d(x, tf.Variable(tf.truncated_normal([3, 3, 1, 4], stddev=0.1)), [1, 1, 1, 1], "SAME") + tf.Variable(
    tf.zeros([4])
)
h = tf.nn.relu(batch_norm(c, 4, phase, "bn"))
flat = tf.reshape(h, [-1, 256])
logits = tf.matmul(flat, tf.Variable(tf.truncated_normal([256, 3], stddev=0.1)))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(30):
        f = {x: np.random.normal(size=(16, 8, 8, 1)), y: np.random.randint(0, 3, 16), phase: True}
        sess.run(train, f)
    f[phase] = False
    print(float(sess.run(loss, f)).hex())
