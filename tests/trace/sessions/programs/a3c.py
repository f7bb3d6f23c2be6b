import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(14)
np.random.seed(14)


def net(scope, s):
    with tf.variable_scope(scope):
        h = tf.nn.relu6(
            tf.matmul(s, tf.get_variable("w", [4, 20]))
            + tf.get_variable("b", [20], initializer=tf.constant_initializer(0.1))
        )
        a = tf.nn.softmax(tf.matmul(h, tf.get_variable("wa", [20, 3])))
        v = tf.matmul(h, tf.get_variable("wv", [20, 1]))
    return a, v, tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope=scope)


s = tf.placeholder(tf.float32, [None, 4])
a_his = tf.placeholder(tf.int32, [None])
v_target = tf.placeholder(tf.float32, [None, 1])
_, _, global_params = net("Global_Net", s)
a_prob, v, local_params = net("W_0", s)
td = tf.subtract(v_target, v)
c_loss = tf.reduce_mean(tf.square(td))
log_prob = tf.reduce_sum(tf.log(a_prob + 1e-5) * tf.one_hot(a_his, 3), axis=1, keepdims=True)
exp_v = log_prob * tf.stop_gradient(td)
entropy = -tf.reduce_sum(a_prob * tf.log(a_prob + 1e-5), axis=1, keepdims=True)
a_loss = tf.reduce_mean(-(0.01 * entropy + exp_v))
total = a_loss + 0.5 * c_loss
grads = tf.gradients(total, local_params)
clipped, _ = tf.clip_by_global_norm(grads, 40.0)
pull = [l.assign(g) for l, g in zip(local_params, global_params)]
push = tf.train.RMSPropOptimizer(0.001).apply_gradients(zip(clipped, global_params))
sess = tf.Session()
sess.run(tf.global_variables_initializer())
sess.run(pull)
for it in range(30):
    feed = {
        s: np.random.normal(size=(10, 4)),
        a_his: np.random.randint(0, 3, 10),
        v_target: np.random.normal(size=(10, 1)),
    }
    sess.run([push], feed)
    sess.run(pull)
print(sess.run(global_params[0]).tobytes().hex()[:80])
