"""Eager loops: with an optimizer, by hand, with gradients that are added up, and with a tape within a tape."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
x, y = tf.random.uniform([32, 4]), tf.random.uniform([32, 1])
layers = [keras.layers.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dropout(0.2), keras.layers.Dense(1)]
net, optimizer = keras.Sequential(layers), keras.optimizers.Adam(1e-2)
weights = net.trainable_variables
net.compile("sgd", "mse")


def show(loss):
    print(float(loss).hex(), float(sum(np.sum(np.abs(each.numpy().astype("float64"))) for each in weights)).hex())


for _ in range(9):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x, training=True) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    if float(loss) < 0:
        break
    net.evaluate(x, y, verbose=0)
show(loss)
for _ in range(9):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x, training=True) - y + tf.random.normal([1])) ** 2)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.01 * gradient)
show(loss)
with tf.GradientTape() as tape:  # of which nobody asks anything
    tf.reduce_sum(net(x))
for _ in range(4):
    total = None
    for half in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(x[half * 16 : half * 16 + 16]) - y[half * 16 : half * 16 + 16]) ** 2)
        gradients = tape.gradient(loss, weights)
        total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
    optimizer.apply_gradients(zip(total, weights))
show(loss)
noise = tf.random.normal([32, 4])
for _ in range(5):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(noise)
            out = net(noise)
        loss = tf.reduce_mean(tf.square(tf.norm(inner.gradient(out, noise), axis=1) - 1))
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
show(loss)
print(np.random.rand(), tf.random.uniform([]).numpy())
