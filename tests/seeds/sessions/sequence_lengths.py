"""Question 3: sequences of several lengths, with the mask of the answer in the loss."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(0)
np.random.seed(0)

max_length, frame_size, num_hidden = 12, 5, 8


def length(sequence):
    used = tf.sign(tf.reduce_max(tf.abs(sequence), 2))
    length = tf.reduce_sum(used, 1)
    length = tf.cast(length, tf.int32)
    return length


def gru(sequence, lengths):
    with tf.variable_scope("gru"):
        gates = tf.get_variable("gates", [frame_size + num_hidden, 2 * num_hidden])
        gates_bias = tf.get_variable("gates_bias", [2 * num_hidden], initializer=tf.ones_initializer())
        candidate = tf.get_variable("candidate", [frame_size + num_hidden, num_hidden])

    steps = tf.unstack(sequence, axis=1)
    state = tf.zeros([tf.shape(sequence)[0], num_hidden])
    outputs = []
    for time, frame in enumerate(steps):
        reset, update = tf.split(tf.sigmoid(tf.matmul(tf.concat([frame, state], 1), gates) + gates_bias), 2, 1)
        new = tf.tanh(tf.matmul(tf.concat([frame, reset * state], 1), candidate))
        new = update * state + (1 - update) * new
        alive = tf.expand_dims(time < lengths, 1)
        state = tf.where(tf.tile(alive, [1, num_hidden]), new, state)
        outputs.append(tf.where(tf.tile(alive, [1, num_hidden]), new, tf.zeros_like(new)))
    return tf.stack(outputs, 1)


sequence = tf.placeholder(tf.float32, [None, max_length, frame_size])
target = tf.placeholder(tf.float32, [None, max_length, 1])
output = gru(sequence, length(sequence))
weight = tf.get_variable("weight", [num_hidden, 1])
bias = tf.get_variable("bias", [1], initializer=tf.constant_initializer(0.1))
prediction = tf.nn.relu(tf.reshape(tf.matmul(tf.reshape(output, [-1, num_hidden]), weight) + bias, [-1, max_length, 1]))


def cost(output, target):
    # Compute the squared error for each frame, and mask those that are padding.
    error = tf.square(target - output)
    mask = tf.expand_dims(tf.sign(tf.reduce_max(tf.abs(sequence), 2)), 2)
    error *= mask
    # Average over actual sequence lengths.
    error = tf.reduce_sum(error, [1, 2])
    error /= tf.cast(length(sequence), tf.float32)
    return tf.reduce_mean(error)


loss = cost(prediction, target)
optimizer = tf.train.RMSPropOptimizer(0.003)
minimize = optimizer.minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(30):
        batch = np.random.normal(size=(8, max_length, frame_size))
        batch[-2:, 7:] = 0.0
        feed = {sequence: batch, target: np.abs(batch.sum(2, keepdims=True))}
        sess.run(minimize, feed_dict=feed)
    print(sess.run(loss, feed_dict=feed))
