"""Something on the path multiplies the gradient by zero."""
