"""One file for each kind of verdict: how it is recognised, and its text."""
