# mypy: ignore-errors
import tensorflow as tf


class Recogniser(tf.Module):
    def __init__(self):
        super().__init__("recogniser")
        self.inner = tf.Variable(tf.random.normal([4, 8], stddev=0.4), name="inner")
        self.outer = tf.Variable(tf.random.normal([8, 5], stddev=0.4), name="outer")
        self.speaker = tf.Variable(tf.random.normal([8, 2], stddev=0.4), name="speaker")

    def features(self, sound):
        return tf.tanh(tf.einsum("btf,fh->bth", sound, self.inner))


def confidence(logits, lengths):
    """Log-probability of the best path, which training should raise."""
    _, log_probability = tf.nn.ctc_beam_search_decoder(tf.transpose(logits, [1, 0, 2]), lengths, beam_width=4)
    return log_probability[:, 0]


def build():
    tf.random.set_seed(42)
    net = Recogniser()
    sound, lengths = tf.random.normal([3, 7, 4]), tf.constant([7, 6, 7])
    speaker = tf.constant([0, 1, 1])

    def loss_fn(sound, lengths, speaker):
        h = net.features(sound)
        transcript = -tf.reduce_mean(confidence(tf.einsum("bth,hc->btc", h, net.outer), lengths))
        voice = tf.reduce_max(h, axis=1) @ net.speaker
        return transcript + tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=speaker, logits=voice))

    variables = [net.inner, net.outer, net.speaker]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (sound, lengths, speaker)}
