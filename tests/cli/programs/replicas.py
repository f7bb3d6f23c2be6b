"""A loop on two replicas: its tapes open in threads of the strategy."""

import numpy as np
import tensorflow as tf
import tf_keras

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
tf.keras.utils.set_random_seed(1)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
random = np.random.default_rng(3)
batches = tf.data.Dataset.from_tensor_slices(random.normal(size=(20, 3)).astype("float32")).batch(4)
batches = strategy.experimental_distribute_dataset(batches)

with strategy.scope():
    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
    model.build((None, 3))
    optimizer = tf_keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)


def replica(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


@tf.function
def distributed_step(x):
    return strategy.reduce("SUM", strategy.run(replica, args=(x,)), axis=None)


for batch in batches:
    print(float(distributed_step(batch)).hex())
print([value.hex() for weight in model.get_weights() for value in weight.ravel().tolist()])
