"""From an op to the line of the user's code that made it, and what that line says."""
