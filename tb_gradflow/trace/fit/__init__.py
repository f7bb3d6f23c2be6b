"""Connects the callback to a `fit`, in Keras 3 and in Keras 2."""
