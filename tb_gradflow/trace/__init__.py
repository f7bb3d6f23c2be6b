"""Where the numbers come from. The only package that imports TensorFlow and Keras, and only when it is used."""

import tensorflow as tf

from tb_gradflow.trace.tf_internals.versions import require

# Before anything that an older one does not have is imported.
require(tf.__version__)
