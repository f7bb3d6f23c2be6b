"""Where the numbers come from. The only package that imports TensorFlow and Keras, and only when it is used."""
