import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(6)
np.random.seed(6)
vocab, hidden, T, B = 12, 16, 10, 8
inputs = tf.placeholder(tf.int32, [B, T])
targets = tf.placeholder(tf.int32, [B, T])
with tf.variable_scope("rnn"):
    emb = tf.get_variable("embedding", [vocab, hidden])
    kernel = tf.get_variable("kernel", [2 * hidden, 4 * hidden])
    bias = tf.get_variable("bias", [4 * hidden], initializer=tf.zeros_initializer())
    softmax_w = tf.get_variable("softmax_w", [hidden, vocab])
    softmax_b = tf.get_variable("softmax_b", [vocab], initializer=tf.zeros_initializer())
x = tf.transpose(tf.nn.embedding_lookup(emb, inputs), [1, 0, 2])
x_ta = tf.TensorArray(tf.float32, size=T).unstack(x)
out_ta = tf.TensorArray(tf.float32, size=T)


def body(t, c, h, out):
    z = tf.matmul(tf.concat([x_ta.read(t), h], 1), kernel) + bias
    i, j, f, o = tf.split(z, 4, 1)
    c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
    h = tf.sigmoid(o) * tf.tanh(c)
    return t + 1, c, h, out.write(t, h)


zero = tf.zeros([B, hidden])
_, _, _, out_ta = tf.while_loop(lambda t, *_: t < T, body, [0, zero, zero, out_ta])
output = tf.reshape(tf.transpose(out_ta.stack(), [1, 0, 2]), [-1, hidden])
logits = tf.matmul(output, softmax_w) + softmax_b
loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(targets, [-1]), logits=logits)
cost = tf.reduce_sum(loss) / B / T
lr = tf.Variable(0.0, trainable=False)
tvars = tf.trainable_variables()
grads, _ = tf.clip_by_global_norm(tf.gradients(cost, tvars), 5.0)
optimizer = tf.train.AdamOptimizer(lr)
train_op = optimizer.apply_gradients(zip(grads, tvars))
with tf.Session() as sess:
    tf.global_variables_initializer().run()
    for e in range(3):
        sess.run(tf.assign(lr, 0.01 * (0.97**e)))
        for b in range(12):
            d = np.random.randint(0, vocab, [B, T + 1])
            train_loss, _ = sess.run([cost, train_op], {inputs: d[:, :-1], targets: d[:, 1:]})
        print(e, float(train_loss).hex())
    print(sess.run(kernel).tobytes().hex()[:100])
