import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
np.random.seed(16)


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = []
        for g, _ in grad_and_vars:
            expanded_g = tf.expand_dims(g, 0)
            grads.append(expanded_g)
        grad = tf.concat(axis=0, values=grads)
        grad = tf.reduce_mean(grad, 0)
        v = grad_and_vars[0][1]
        average_grads.append((grad, v))
    return average_grads


def tower_loss(scope, images, labels):
    w = tf.get_variable("w", [10, 8], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=1))
    decay = tf.multiply(tf.nn.l2_loss(w), 0.004, name="weight_loss")
    tf.add_to_collection("losses", decay)
    h = tf.nn.relu(tf.matmul(images, w) + tf.get_variable("b", [8], initializer=tf.constant_initializer(0.1)))
    logits = tf.matmul(
        h, tf.get_variable("w2", [8, 3], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=2))
    )
    tf.add_to_collection(
        "losses", tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    )
    return tf.add_n(tf.get_collection("losses", scope), name="total_loss")


with tf.Graph().as_default(), tf.device("/cpu:0"):
    global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
    lr = tf.train.exponential_decay(0.1, global_step, 10, 0.9, staircase=True)
    opt = tf.train.GradientDescentOptimizer(lr)
    images = tf.placeholder(tf.float32, [32, 10])
    labels = tf.placeholder(tf.int64, [32])
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(2):
            with tf.name_scope("tower_%d" % i) as scope:
                loss = tower_loss(scope, images[i * 16 : i * 16 + 16], labels[i * 16 : i * 16 + 16])
                tf.get_variable_scope().reuse_variables()
                grads = opt.compute_gradients(loss)
                tower_grads.append(grads)
    grads = average_gradients(tower_grads)
    apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
    variable_averages = tf.train.ExponentialMovingAverage(0.99, global_step)
    variables_averages_op = variable_averages.apply(tf.trainable_variables())
    train_op = tf.group(apply_gradient_op, variables_averages_op)
    sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
    sess.run(tf.global_variables_initializer())
    for step in range(30):
        _, loss_value = sess.run(
            [train_op, loss], {images: np.random.normal(size=(32, 10)), labels: np.random.randint(0, 3, 32)}
        )
        assert not np.isnan(loss_value)
    print(float(loss_value).hex())
