"""Something on the path multiplies the gradient with zero."""
