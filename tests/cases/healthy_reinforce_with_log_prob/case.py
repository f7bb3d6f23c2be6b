# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(139)
    hidden = tf.Variable(tf.random.normal([5, 10], stddev=0.5), name="hidden")
    policy = tf.Variable(tf.random.normal([10, 3], stddev=0.5), name="policy")
    value = tf.Variable(tf.random.normal([10, 1], stddev=0.5), name="value")
    state, payoff = tf.random.normal([24, 5]), tf.random.normal([24, 3])

    def loss_fn(state, payoff):
        h = tf.tanh(state @ hidden)
        logits, baseline = h @ policy, tf.squeeze(h @ value, 1)
        action = tf.squeeze(tf.random.stateless_categorical(logits, 1, seed=[6, 6]), 1)
        reward = tf.gather(payoff, action, batch_dims=1)
        advantage = tf.stop_gradient(reward - baseline)
        log_prob = tf.reduce_sum(tf.nn.log_softmax(logits) * tf.one_hot(action, 3), axis=1)
        entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), axis=1)
        return tf.reduce_mean(-log_prob * advantage + 0.5 * tf.square(reward - baseline) - 0.01 * entropy)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [hidden, policy, value], "args": (state, payoff)}
