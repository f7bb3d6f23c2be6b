"""The user's source as a syntax tree, the place of an op in it, and changes of it put together into an edit."""
