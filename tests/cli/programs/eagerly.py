"""A compiled step of a program that runs all of its functions eagerly."""

import keras
import tensorflow as tf

tf.config.run_functions_eagerly(True)
keras.utils.set_random_seed(3)
x, y = tf.random.uniform([32, 4]), tf.random.uniform([32, 1])
net, optimizer = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)]), keras.optimizers.Adam(1e-2)


@tf.function
def forward(features):
    return net(features)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((forward(features) - labels) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    return loss


for _ in range(9):
    loss = train_step(x, y)
print(float(loss).hex(), [weight.sum().hex() for weight in map(lambda w: w.astype("float64"), net.get_weights())])
