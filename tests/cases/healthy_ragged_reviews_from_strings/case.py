# mypy: ignore-errors
import keras
import tensorflow as tf


def build():
    keras.utils.set_random_seed(54)
    words = ["good", "bad", "film", "very", "never"]
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(words, tf.range(5, dtype=tf.int64)), num_oov_buckets=2
    )
    embedding = tf.Variable(tf.random.normal([7, 4]), name="embedding")
    head = tf.Variable(tf.random.normal([4, 1]), name="head")
    bias = tf.Variable([0.0], name="bias")
    reviews = tf.constant(["very good film", "bad bad", "never seen such a good film", "film"])

    def loss_fn(reviews, liked):
        tokens = tf.strings.split(tf.strings.lower(reviews))
        ids = tf.ragged.map_flat_values(table.lookup, tokens)
        vectors = tf.ragged.map_flat_values(lambda i: tf.nn.embedding_lookup(embedding, i), ids)
        logits = tf.matmul(tf.reduce_mean(vectors, axis=1), head) + bias
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(liked, logits))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [embedding, head, bias],
        "args": (reviews, tf.constant([[1.0], [0.0], [1.0], [0.0]])),
    }
