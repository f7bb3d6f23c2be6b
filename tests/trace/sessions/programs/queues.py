import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(9)
np.random.seed(9)
data = np.random.normal(size=(64, 5)).astype(np.float32)
label = (data @ np.arange(5.0)).astype(np.float32)[:, None]
x, y = tf.train.slice_input_producer([tf.constant(data), tf.constant(label)], num_epochs=5, shuffle=False)
xb, yb = tf.train.batch([x, y], batch_size=8, num_threads=1, capacity=32)
w = tf.Variable(tf.zeros([5, 1]))
b = tf.Variable(0.0)
loss = tf.reduce_mean(tf.square(tf.matmul(xb, w) + b - yb))
global_step = tf.Variable(0, name="global_step", trainable=False)
train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=global_step)
init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
sess = tf.Session()
sess.run(init_op)
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(sess=sess, coord=coord)
try:
    step = 0
    while not coord.should_stop():
        _, loss_value = sess.run([train_op, loss])
        if step % 10 == 0:
            print("Step %d: loss = %s" % (step, float(loss_value).hex()))
        step += 1
except tf.errors.OutOfRangeError as e:
    print("Done training for %d steps." % step, type(e).__name__)
finally:
    coord.request_stop()
coord.join(threads)
print(sess.run([w, b, global_step]))
sess.close()
