# mypy: ignore-errors
import keras
import tensorflow as tf


def build():
    keras.utils.set_random_seed(26)
    network = keras.Sequential(
        [
            keras.Input((1,), name="position"),
            keras.layers.Dense(10, activation="relu", bias_initializer="random_normal", name="wide"),
            keras.layers.Dense(10, activation="relu", bias_initializer="random_normal", name="deep"),
            keras.layers.Dense(1, name="potential"),
        ]
    )
    charge = tf.Variable(0.5, name="charge")
    points = tf.reshape(tf.linspace(-1.0, 1.0, 16), [16, 1])

    def residual(points):
        with tf.GradientTape() as outer:
            outer.watch(points)
            with tf.GradientTape() as inner:
                inner.watch(points)
                u = network(points)
            slope = inner.gradient(u, points)
        curvature = outer.gradient(slope, points, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.reduce_mean(tf.square(curvature + charge * tf.exp(-(points**2))) + 0.1 * (charge - 1.0) ** 2)

    return {
        "kind": "function",
        "loss_fn": residual,
        "variables": [*network.trainable_variables, charge],
        "args": (points,),
    }
