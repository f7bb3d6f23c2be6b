# mypy: ignore-errors
import tensorflow as tf


class Regression(tf.Module):
    def __init__(self):
        super().__init__("regression")
        self.slope = tf.Variable([[0.2], [0.1]], name="slope")
        self.intercept = tf.Variable([0.5], name="intercept")

    def __call__(self, x):
        return x @ self.slope + self.intercept


def warm_up(model, x, y, rate=0.1):
    """One plain step of gradient descent."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    slope, intercept = tape.gradient(loss, [model.slope, model.intercept])
    model.slope = model.slope - rate * slope
    model.intercept.assign_sub(rate * intercept)


def build():
    tf.random.set_seed(95)
    model = Regression()
    variables = list(model.trainable_variables)
    x = tf.random.normal([12, 2])
    y = x @ [[1.0], [-2.0]] + 0.3
    warm_up(model, x, y)

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(model(x) - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
