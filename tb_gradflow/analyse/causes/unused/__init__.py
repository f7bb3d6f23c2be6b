"""The variable takes no part in the loss, or is not to be trained."""
