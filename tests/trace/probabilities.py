"""Losses of probabilities and of logits: in some, a softmax or a sigmoid is applied twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

X = np.random.default_rng(0).normal(size=(16, 8)).astype("float32")
Y = np.zeros(16, "int32")
ONE_HOT = tf.one_hot(Y, 3)
WEIGHTS = tf.Variable(np.random.default_rng(1).normal(size=(8, 3)).astype("float32"), name="weights")


def under_a_name() -> Any:
    scores = X @ WEIGHTS
    shares = tf.nn.softmax(scores)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=Y, logits=shares))


def in_the_call() -> Any:
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(ONE_HOT, tf.nn.softmax(X @ WEIGHTS)))


def of_sigmoids() -> Any:
    shares = tf.reshape(tf.sigmoid(X @ WEIGHTS), [-1, 3])
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=ONE_HOT, logits=shares))


def two_sigmoids() -> Any:
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(ONE_HOT, tf.sigmoid(X @ WEIGHTS)))


def a_teacher() -> Any:
    teacher = tf.stop_gradient(tf.nn.softmax(X[:, :3]))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=teacher, logits=X @ WEIGHTS))


def labels_that_are_learned() -> Any:
    shares = tf.nn.softmax(X @ WEIGHTS)
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=shares, logits=X[:, :3]))


def logarithms_of_shares() -> Any:
    logarithms = tf.math.log(tf.nn.softmax(X @ WEIGHTS))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=ONE_HOT, logits=logarithms))


def scaled_shares() -> Any:
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(ONE_HOT, 30.0 * tf.sigmoid(X @ WEIGHTS)))


def shares_as_labels_of_a_sigmoid() -> Any:
    soft = tf.sigmoid(X[:, :3])
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=soft, logits=X @ WEIGHTS))


def shares_that_are_learned_as_labels_of_a_sigmoid() -> Any:
    soft = tf.sigmoid(X @ WEIGHTS)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=soft, logits=X[:, :3]))
