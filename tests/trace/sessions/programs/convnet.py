import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(3)
np.random.seed(3)
X = tf.placeholder(tf.float32, [None, 196])
Y = tf.placeholder(tf.float32, [None, 10])
keep_prob = tf.placeholder(tf.float32)  # dropout (keep probability)


def conv2d(x, W, b, strides=1):
    x = tf.nn.conv2d(x, W, strides=[1, strides, strides, 1], padding="SAME")
    x = tf.nn.bias_add(x, b)
    return tf.nn.relu(x)


def maxpool2d(x, k=2):
    return tf.nn.max_pool(x, ksize=[1, k, k, 1], strides=[1, k, k, 1], padding="SAME")


def conv_net(x, weights, biases, dropout):
    x = tf.reshape(x, shape=[-1, 14, 14, 1])
    conv1 = conv2d(x, weights["wc1"], biases["bc1"])
    conv1 = maxpool2d(conv1, k=2)
    conv2 = conv2d(conv1, weights["wc2"], biases["bc2"])
    conv2 = maxpool2d(conv2, k=2)
    fc1 = tf.reshape(conv2, [-1, weights["wd1"].get_shape().as_list()[0]])
    fc1 = tf.add(tf.matmul(fc1, weights["wd1"]), biases["bd1"])
    fc1 = tf.nn.relu(fc1)
    fc1 = tf.nn.dropout(fc1, dropout)
    out = tf.add(tf.matmul(fc1, weights["out"]), biases["out"])
    return out


weights = {
    "wc1": tf.Variable(tf.random_normal([5, 5, 1, 8]) * 0.1),
    "wc2": tf.Variable(tf.random_normal([5, 5, 8, 16]) * 0.1),
    "wd1": tf.Variable(tf.random_normal([4 * 4 * 16, 32]) * 0.1),
    "out": tf.Variable(tf.random_normal([32, 10]) * 0.1),
}
biases = {
    "bc1": tf.Variable(tf.random_normal([8]) * 0.1),
    "bc2": tf.Variable(tf.random_normal([16]) * 0.1),
    "bd1": tf.Variable(tf.random_normal([32]) * 0.1),
    "out": tf.Variable(tf.random_normal([10]) * 0.1),
}
logits = conv_net(X, weights, biases, keep_prob)
prediction = tf.nn.softmax(logits)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
optimizer = tf.train.AdamOptimizer(learning_rate=0.001)
train_op = optimizer.minimize(loss_op)
correct_pred = tf.equal(tf.argmax(prediction, 1), tf.argmax(Y, 1))
accuracy = tf.reduce_mean(tf.cast(correct_pred, tf.float32))
init = tf.global_variables_initializer()
with tf.Session() as sess:
    sess.run(init)
    for step in range(1, 31):
        batch_x = np.random.rand(16, 196)
        batch_y = np.eye(10)[np.random.randint(0, 10, 16)]
        sess.run(train_op, feed_dict={X: batch_x, Y: batch_y, keep_prob: 0.75})
        if step % 10 == 0 or step == 1:
            loss, acc = sess.run([loss_op, accuracy], feed_dict={X: batch_x, Y: batch_y, keep_prob: 1.0})
            print("Step " + str(step) + ", Minibatch Loss= " + float(loss).hex() + ", acc " + str(acc))
    print(sess.run(weights["wc1"]).tobytes().hex()[:200])
