# mypy: ignore-errors
import keras
import tensorflow as tf


class Vae(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([keras.Input((256,)), keras.layers.Dense(4, name="code")], name="encoder")
        self.decoder = keras.Sequential([keras.Input((2,)), keras.layers.Dense(256, name="pixels")], name="decoder")
        self.noise = keras.random.SeedGenerator(3)

    def train_step(self, images):
        with tf.GradientTape() as tape:
            mean, log_var = tf.split(self.encoder(images), 2, axis=-1)
            code = mean + tf.exp(0.5 * log_var) * keras.random.normal(tf.shape(mean), seed=self.noise)
            errors = tf.square(self.decoder(code) - images)
            reconstruction = tf.reduce_mean(errors)
            kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), axis=-1))
            loss = reconstruction + kl
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(4)
    digits = tf.random.normal([4, 256])
    images = tf.gather(digits, tf.range(128) % 4) + 0.1 * tf.random.normal([128, 256])
    model = Vae()
    model.compile(keras.optimizers.Adam(0.003), jit_compile=False)
    model.built = True
    model.fit(images, batch_size=128, epochs=400, verbose=0)
    return {"kind": "keras", "model": model, "x": images, "y": None}
