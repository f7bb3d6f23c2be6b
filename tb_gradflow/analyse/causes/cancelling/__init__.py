"""The gradient arrives on several paths, or from many elements, and they add up to zero."""
