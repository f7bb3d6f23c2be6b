# mypy: ignore-errors
"""A hidden Markov model trained by the likelihood from the forward recursion, in probabilities."""

import numpy as np
import tensorflow as tf

STATES, SYMBOLS, STEPS = 4, 12, 70


class HiddenMarkov(tf.Module):
    def __init__(self):
        super().__init__(name="hmm")
        g = tf.random.Generator.from_seed(11)
        self.start_logits = tf.Variable(g.normal([STATES], stddev=0.3), name="start_logits")
        self.move_logits = tf.Variable(g.normal([STATES, STATES], stddev=0.3), name="move_logits")
        self.emit_logits = tf.Variable(g.normal([STATES, SYMBOLS], stddev=0.3), name="emit_logits")

    def tables(self):
        return (
            tf.nn.log_softmax(self.start_logits),
            tf.nn.log_softmax(self.move_logits, axis=-1),
            tf.nn.log_softmax(self.emit_logits, axis=-1),
        )

    def likelihood(self, symbols):
        start, move, emit = self.tables()
        seen = tf.gather(tf.transpose(emit), tf.transpose(symbols))  # steps, batch, states

        def step(alpha, emission):
            return tf.reduce_logsumexp(alpha[:, :, None] + move[None], axis=1) + emission

        first = start[None, :] + seen[0]
        alphas = tf.scan(step, seen[1:], initializer=first)
        return tf.reduce_logsumexp(alphas[-1], axis=-1)

    def decode(self, symbols):
        """most likely state of every emission alone, for the report"""
        return tf.argmax(tf.gather(tf.transpose(self.emit_logits), symbols), axis=-1)


class LengthModel(tf.Module):
    """a geometric prior of the length of a sequence, part of the same likelihood"""

    def __init__(self):
        super().__init__(name="length")
        self.stop_logit = tf.Variable(-1.5, name="stop_logit")

    def log_prob(self, lengths):
        lengths = tf.cast(lengths, tf.float32)
        return tf.math.log_sigmoid(self.stop_logit) + (lengths - 1.0) * tf.math.log_sigmoid(-self.stop_logit)


def build():
    rng = np.random.default_rng(4)
    symbols = tf.constant(rng.integers(0, SYMBOLS, size=(3, STEPS)).astype("int32"))
    hmm, length = HiddenMarkov(), LengthModel()

    def loss_fn(symbols):
        hmm.decode(symbols)
        log_likelihood = hmm.likelihood(symbols)
        prior = length.log_prob(tf.fill([tf.shape(symbols)[0]], STEPS))
        return -tf.reduce_mean(log_likelihood + prior)

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "args": (symbols,),
        "variables": [hmm.start_logits, hmm.move_logits, hmm.emit_logits, length.stop_logit],
    }
