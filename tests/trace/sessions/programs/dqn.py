import random

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(7)
np.random.seed(7)
random.seed(7)
n_actions, n_features = 3, 4


class DeepQNetwork:
    def __init__(self):
        self.memory = []
        self.learn_step_counter = 0
        self._build_net()
        t_params = tf.get_collection("target_net_params")
        e_params = tf.get_collection("eval_net_params")
        self.replace_target_op = [tf.assign(t, e) for t, e in zip(t_params, e_params)]
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())
        self.cost_his = []

    def _build_net(self):
        self.s = tf.placeholder(tf.float32, [None, n_features], name="s")
        self.q_target = tf.placeholder(tf.float32, [None, n_actions], name="Q_target")

        def layers(s, c_names):
            w_init, b_init = tf.random_normal_initializer(0.0, 0.3), tf.constant_initializer(0.1)
            with tf.variable_scope("l1"):
                w1 = tf.get_variable("w1", [n_features, 10], initializer=w_init, collections=c_names)
                b1 = tf.get_variable("b1", [1, 10], initializer=b_init, collections=c_names)
                l1 = tf.nn.relu(tf.matmul(s, w1) + b1)
            with tf.variable_scope("l2"):
                w2 = tf.get_variable("w2", [10, n_actions], initializer=w_init, collections=c_names)
                b2 = tf.get_variable("b2", [1, n_actions], initializer=b_init, collections=c_names)
                return tf.matmul(l1, w2) + b2

        with tf.variable_scope("eval_net"):
            self.q_eval = layers(self.s, ["eval_net_params", tf.GraphKeys.GLOBAL_VARIABLES])
        with tf.variable_scope("loss"):
            self.loss = tf.reduce_mean(tf.squared_difference(self.q_target, self.q_eval))
        with tf.variable_scope("train"):
            self._train_op = tf.train.RMSPropOptimizer(0.01).minimize(self.loss)
        self.s_ = tf.placeholder(tf.float32, [None, n_features], name="s_")
        with tf.variable_scope("target_net"):
            self.q_next = layers(self.s_, ["target_net_params", tf.GraphKeys.GLOBAL_VARIABLES])

    def choose_action(self, observation):
        if np.random.uniform() < 0.9:
            return int(np.argmax(self.sess.run(self.q_eval, feed_dict={self.s: observation[None]})))
        return np.random.randint(0, n_actions)

    def learn(self):
        if self.learn_step_counter % 10 == 0:
            self.sess.run(self.replace_target_op)
        batch = random.sample(self.memory, 16)
        s, a, r, s_ = (np.array(each) for each in zip(*batch))
        q_next, q_eval = self.sess.run([self.q_next, self.q_eval], feed_dict={self.s_: s_, self.s: s})
        q_target = q_eval.copy()
        q_target[np.arange(16), a] = r + 0.9 * np.max(q_next, axis=1)
        _, cost = self.sess.run([self._train_op, self.loss], feed_dict={self.s: s, self.q_target: q_target})
        self.cost_his.append(cost)
        self.learn_step_counter += 1


agent = DeepQNetwork()
s = np.random.normal(size=4)
for step in range(120):
    a = agent.choose_action(s)
    s_ = 0.9 * s + 0.1 * (a - 1) + np.random.normal(size=4) * 0.1
    agent.memory.append((s, a, -float(np.square(s_).sum()), s_))
    s = s_
    if step > 40 and step % 2 == 0:
        agent.learn()
print([float(c).hex() for c in agent.cost_his[-3:]])
