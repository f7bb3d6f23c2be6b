"""Loops as people type them, each with what goes wrong in such loops: weights in dictionaries, one forgotten; a
prediction under the tape; a divergence of what may be negative; a network of zeros."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
X = tf.constant(np.random.default_rng(5).normal(size=(8, 4)).astype("float32"))
Y = tf.constant(np.random.default_rng(6).integers(0, 3, 8))


def network(start):
    weights = {"h1": tf.Variable(start([4, 5])), "out": tf.Variable(start([5, 3]))}
    biases = {"b1": tf.Variable(tf.zeros([5])), "out": tf.Variable(tf.zeros([3]))}
    return weights, biases


def predict(x, weights, biases):
    hidden = tf.nn.sigmoid(tf.matmul(x, weights["h1"]) + biases["b1"])
    return tf.matmul(hidden, weights["out"]) + biases["out"]


def cross_entropy(logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=Y, logits=logits))


def forgets_one():
    weights, biases = network(tf.initializers.RandomNormal(seed=1))
    optimizer = tf.keras.optimizers.SGD(0.1)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = cross_entropy(predict(X, weights, biases))
        chosen = [weights["h1"], weights["out"], biases["b1"]]
        optimizer.apply_gradients(zip(tape.gradient(loss, chosen), chosen))


def begins_with_zeros():
    weights, biases = network(tf.zeros)
    with tf.GradientTape() as tape:
        loss = cross_entropy(predict(X, weights, biases))
    chosen = [*weights.values(), *biases.values()]
    tf.keras.optimizers.SGD(0.1).apply_gradients(zip(tape.gradient(loss, chosen), chosen))


def logarithm_of_a_negative():
    encoder, decoder = keras.layers.Dense(4), keras.layers.Dense(4)
    decoder(encoder(X)[:, :2])
    with tf.GradientTape() as tape:
        mean, log_variance = tf.split(encoder(X), 2, -1)
        code = mean + tf.exp(0.5 * log_variance) * tf.random.normal(tf.shape(mean), seed=2)
        likelihood = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.nn.sigmoid(X), logits=decoder(code))
        divergence = -0.5 * (1.0 + tf.math.log(log_variance) - tf.square(mean) - log_variance)
        loss = tf.reduce_mean(likelihood) + tf.reduce_mean(divergence)
    chosen = encoder.trainable_variables + decoder.trainable_variables
    tf.keras.optimizers.SGD(0.0).apply_gradients(zip(tape.gradient(loss, chosen), chosen))


def prediction_of_keras():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    with tf.GradientTape() as tape:
        scores = model.predict(X, verbose=0)
        loss = cross_entropy(scores)
    tape.gradient(loss, model.trainable_variables)


forgets_one()
begins_with_zeros()
logarithm_of_a_negative()
prediction_of_keras()
