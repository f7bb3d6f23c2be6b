"""The evidence for a cause: the suspect op, and the known values around it."""
