"""Measures a training. The only package that imports TensorFlow and Keras, and only when it is used."""

import tensorflow as tf

from tb_gradflow.trace.tf_internals.used_symbols import require_modules
from tb_gradflow.trace.tf_internals.versions import require

# Checked before any import that an older TensorFlow does not have.
require(tf.__version__)
require_modules(tf.__version__)
