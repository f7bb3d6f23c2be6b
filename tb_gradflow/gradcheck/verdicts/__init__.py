"""One file for each kind of verdict: what it is recognised by, and its words."""
