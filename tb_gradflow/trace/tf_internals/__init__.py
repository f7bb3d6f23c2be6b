"""What only the internals of TensorFlow and Keras can do, and how a function of theirs is replaced for a while."""
