"""What the callback needs of a `fit`, in Keras 3 and in Keras 2."""
