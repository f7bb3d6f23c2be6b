# mypy: ignore-errors
import numpy as np
import tensorflow as tf


class Echo(tf.Module):
    def __init__(self):
        super().__init__()
        self.delay = tf.Variable(6.3, name="delay")
        self.mix = tf.Variable(-0.2, name="mix")
        self.decay = tf.Variable(0.7, name="decay")
        self.gain = tf.Variable(1.1, name="gain")

    def __call__(self, dry):
        late = dry
        wet = tf.zeros_like(dry)
        for _ in range(3):
            late = self.decay * self.shift(late)
            wet += late
        mix = tf.clip_by_value(self.mix, 0.0, 1.0)
        return self.gain * ((1.0 - mix) * dry + mix * wet) + 0.05 * wet

    def shift(self, x):
        return tf.roll(x, tf.cast(tf.round(self.delay), tf.int32), axis=-1)


def build():
    rng = np.random.default_rng(509)
    echo = Echo()
    dry = tf.constant(rng.normal(size=(2, 64)), tf.float32)
    wanted = 0.8 * dry + 0.3 * tf.roll(dry, 9, -1)

    def loss_fn(dry):
        out = echo(dry)
        spectrum = tf.abs(tf.signal.rfft(out)) - tf.abs(tf.signal.rfft(wanted))
        return tf.reduce_mean(tf.square(out - wanted)) + 0.1 * tf.reduce_mean(tf.abs(spectrum))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [echo.delay, echo.mix, echo.decay, echo.gain],
        "args": (dry,),
    }
