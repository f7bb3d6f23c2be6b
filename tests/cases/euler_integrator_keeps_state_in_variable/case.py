# mypy: ignore-errors
import tensorflow as tf


class Pendulum(tf.Module):
    """Simulates an angle and its speed; friction and length are to be identified."""

    def __init__(self):
        super().__init__("pendulum")
        self.friction = tf.Variable(0.3, name="friction")
        self.length = tf.Variable(1.2, name="length")
        self.state = tf.Variable([0.5, 0.0], trainable=False, name="state")

    def slope(self):
        angle, speed = tf.unstack(self.state)
        return tf.stack([speed, -9.81 / self.length * tf.sin(angle) - self.friction * speed])

    def simulate(self, steps, dt=0.05):
        self.state.assign([0.5, 0.0])
        path = []
        for _ in range(steps):
            self.state.assign_add(dt * self.slope())
            path.append(self.state[0])
        return tf.stack(path)


def build():
    pendulum = Pendulum()
    gain = tf.Variable(0.9, name="sensor_gain")
    bias = tf.Variable(0.0, name="sensor_bias")
    seen = tf.cos(tf.range(10, dtype=tf.float32) * 0.15) * 0.5

    def loss_fn(seen):
        return tf.reduce_mean(tf.square(gain * pendulum.simulate(10) + bias - seen))

    variables = [pendulum.friction, pendulum.length, gain, bias]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (seen,)}
