"""The loss does not depend on the variable, or the variable is not meant to be trained."""
