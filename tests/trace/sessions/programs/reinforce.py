import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(8)
np.random.seed(8)
H, D, gamma = 8, 4, 0.99
tf.reset_default_graph()
tf.set_random_seed(8)
observations = tf.placeholder(tf.float32, [None, D], name="input_x")
W1 = tf.get_variable("W1", shape=[D, H])
layer1 = tf.nn.relu(tf.matmul(observations, W1))
W2 = tf.get_variable("W2", shape=[H, 1])
score = tf.matmul(layer1, W2)
probability = tf.nn.sigmoid(score)
tvars = tf.trainable_variables()
input_y = tf.placeholder(tf.float32, [None, 1], name="input_y")
advantages = tf.placeholder(tf.float32, name="reward_signal")
loglik = tf.log(input_y * (input_y - probability) + (1 - input_y) * (input_y + probability))
loss = -tf.reduce_mean(loglik * advantages)
newGrads = tf.gradients(loss, tvars)
adam = tf.train.AdamOptimizer(learning_rate=1e-2)
W1Grad = tf.placeholder(tf.float32, name="batch_grad1")
W2Grad = tf.placeholder(tf.float32, name="batch_grad2")
batchGrad = [W1Grad, W2Grad]
updateGrads = adam.apply_gradients(zip(batchGrad, tvars))
init = tf.global_variables_initializer()
with tf.Session() as sess:
    sess.run(init)
    gradBuffer = sess.run(tvars)
    for ix, grad in enumerate(gradBuffer):
        gradBuffer[ix] = grad * 0
    for episode in range(1, 31):
        xs, ys, drs = [], [], []
        x = np.random.normal(size=[1, D])
        for t in range(20):
            tfprob = sess.run(probability, feed_dict={observations: x})
            action = 1 if np.random.uniform() < tfprob else 0
            xs.append(x)
            ys.append([1 - action])
            x = x * 0.9 + (action - 0.5) * 0.2
            drs.append([1.0 - abs(float(x.sum()))])
        discounted = np.cumsum(np.array(drs)[::-1], 0)[::-1]
        discounted = (discounted - discounted.mean()) / discounted.std()
        tGrad = sess.run(newGrads, feed_dict={observations: np.vstack(xs), input_y: ys, advantages: discounted})
        for ix, grad in enumerate(tGrad):
            gradBuffer[ix] += grad
        if episode % 3 == 0:
            sess.run(updateGrads, feed_dict={W1Grad: gradBuffer[0], W2Grad: gradBuffer[1]})
            for ix, grad in enumerate(gradBuffer):
                gradBuffer[ix] = grad * 0
    print(sess.run(W1).tobytes().hex())
