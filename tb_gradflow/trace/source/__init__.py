"""From an op to the line of the user's code that created it, and the names in that line."""
