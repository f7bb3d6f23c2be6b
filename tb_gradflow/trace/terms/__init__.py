"""The terms of a loss that is a sum: which they are, what they are called, and the gradient of each."""
