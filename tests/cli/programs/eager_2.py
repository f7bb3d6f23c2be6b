"""An eager loop of Keras 2, whose initial weights are drawn from Python's own random numbers, as where no seed is set
in Keras.
"""

import random

import numpy as np
import tensorflow as tf
import tf_keras as keras

random.seed(1)
x, y = np.eye(8, 4, dtype="float32"), np.ones((8, 1), "float32")
model = keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()
losses = []
for _ in range(12):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)  # the first call makes the weights
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    losses.append(float(loss) + random.random())
print([loss.hex() for loss in losses])
print([weight.astype("float64").sum().hex() for weight in model.get_weights()])
