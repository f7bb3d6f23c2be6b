"""The gradient arrives on several paths, or from many elements, and adds up to nothing."""
