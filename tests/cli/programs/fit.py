"""Fits of two models, one of them in two parts, and with a list of callbacks of the program's own."""

import keras
import numpy as np

keras.utils.set_random_seed(1)
x, y = np.random.rand(64, 4).astype("float32"), np.random.rand(64, 1).astype("float32")


def model(name):
    layers = [keras.layers.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dropout(0.2), keras.layers.Dense(1)]
    made = keras.Sequential(layers, name=name)
    made.compile("adam", "mse")
    return made


def digest(made):
    return float(sum(np.sum(np.abs(weight.numpy().astype("float64"))) for weight in made.trainable_variables)).hex()


regressor, critic = model("regressor"), model("critic")
losses = regressor.fit(x, y, 8, 2, 0, [keras.callbacks.EarlyStopping("loss")]).history["loss"]
losses += regressor.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y)).history["loss"]
given = keras.callbacks.CallbackList([], model=critic, add_history=True)
critic.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=given)
print([loss.hex() for loss in losses], digest(regressor), digest(critic), len(given.callbacks))
print(regressor.evaluate(x, y, verbose=0), regressor.predict(x[:2], verbose=0))
