"""How records and reports leave: the TensorBoard plugin, and text. Never imports TensorFlow."""
