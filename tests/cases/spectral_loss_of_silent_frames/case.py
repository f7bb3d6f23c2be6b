# mypy: ignore-errors
import tensorflow as tf


def magnitude(wave, frame=32, hop=16):
    spectrum = tf.signal.stft(wave, frame_length=frame, frame_step=hop, fft_length=frame)
    real, imaginary = tf.math.real(spectrum), tf.math.imag(spectrum)
    return tf.sqrt(tf.square(real) + tf.square(imaginary))


def spectral_convergence(target, estimate):
    return tf.norm(target - estimate) / tf.norm(target)


class Enhancer(tf.Module):
    """Gain per sample from a causal convolution, then a mask: gated-out parts are digital silence."""

    def __init__(self):
        super().__init__(name="enhancer")
        self.filters = tf.Variable(tf.random.normal([9, 1, 4], stddev=0.3), name="filters")
        self.mix = tf.Variable(tf.random.normal([1, 4, 1], stddev=0.3), name="mix")

    def __call__(self, wave, voiced):
        h = tf.nn.elu(tf.nn.conv1d(wave[..., None], self.filters, 1, "SAME"))
        return (tf.nn.conv1d(h, self.mix, 1, "SAME")[..., 0] + wave) * voiced


def build():
    tf.random.set_seed(48)
    model = Enhancer()
    noisy = tf.random.normal([2, 160])
    clean = tf.random.normal([2, 160])
    voiced = tf.concat([tf.ones([2, 96]), tf.zeros([2, 64])], axis=1)

    def loss_fn(noisy, clean, voiced):
        return spectral_convergence(magnitude(clean * voiced + 1e-3), magnitude(model(noisy, voiced)))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [model.filters, model.mix],
        "args": (noisy, clean, voiced),
    }
