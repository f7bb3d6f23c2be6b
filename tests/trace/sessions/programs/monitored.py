import os
import shutil

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
shutil.rmtree("train_logs", ignore_errors=True)
np.random.seed(10)
with tf.Graph().as_default():
    tf.set_random_seed(10)
    global_step = tf.train.get_or_create_global_step()
    x = np.random.normal(size=(200, 6)).astype("f4")
    y = (x.sum(1, keepdims=True) > 0).astype("f4")
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200, seed=1).repeat().batch(20)
    features, labels = tf.data.make_one_shot_iterator(ds).get_next()
    with tf.variable_scope("net", reuse=tf.AUTO_REUSE, use_resource=True):
        h = tf.nn.elu(
            tf.matmul(features, tf.get_variable("w1", [6, 8]))
            + tf.get_variable("b1", [8], initializer=tf.zeros_initializer())
        )
        logits = tf.matmul(h, tf.get_variable("w2", [8, 1]))
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    tf.summary.scalar("loss", loss)
    learning_rate = tf.train.exponential_decay(0.1, global_step, 10, 0.95, staircase=True)
    train_op = tf.train.MomentumOptimizer(learning_rate, 0.9).minimize(loss, global_step=global_step)

    class _LoggerHook(tf.train.SessionRunHook):
        def begin(self):
            self._step = -1

        def before_run(self, run_context):
            self._step += 1
            return tf.train.SessionRunArgs(loss)

        def after_run(self, run_context, run_values):
            if self._step % 10 == 0:
                print(self._step, float(run_values.results).hex())

    with tf.train.MonitoredTrainingSession(
        checkpoint_dir="train_logs",
        save_summaries_steps=10,
        save_checkpoint_steps=15,
        hooks=[tf.train.StopAtStepHook(last_step=40), tf.train.NanTensorHook(loss), _LoggerHook()],
    ) as mon_sess:
        while not mon_sess.should_stop():
            mon_sess.run(train_op)
print(sorted(f for f in os.listdir("train_logs") if not f.startswith("events")))
r = tf.train.NewCheckpointReader(tf.train.latest_checkpoint("train_logs"))
print(r.get_tensor("net/w1").tobytes().hex()[:100], r.get_tensor("global_step"))
print(
    hash(open("train_logs/graph.pbtxt").read()) == 0,
    len(open("train_logs/graph.pbtxt").read()),
    os.path.getsize("train_logs/model.ckpt-40.meta"),
)
