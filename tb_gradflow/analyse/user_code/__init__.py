"""The user's source as a syntax tree, the position of an op in it, and how changes are combined into an edit."""
