"""`train_on_batch`, of batches of several sizes, before and after a `fit`."""

import keras
import numpy as np

keras.utils.set_random_seed(1)
x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 1).astype("float32")
regressor = keras.Sequential(
    [keras.layers.Dense(8, "relu"), keras.layers.Dropout(0.3), keras.layers.Dense(1)], name="regressor"
)
regressor.compile("adam", "mse")
losses = [regressor.train_on_batch(x[:32], y[:32]) for _ in range(20)]
losses += regressor.fit(x, y, batch_size=8, verbose=0).history["loss"]
losses += [regressor.train_on_batch(x[: 20 + size], y[: 20 + size]) for size in range(8)]
regressor.compile("sgd", "mse")
losses += [regressor.train_on_batch(x, y, sample_weight=y[:, 0]) for _ in range(4)]
print([float(loss).hex() for loss in losses])
print([weight.astype("float64").sum().hex() for weight in regressor.get_weights()])
