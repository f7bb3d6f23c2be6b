"""Records the trainings of a program that says nothing of it: each `fit`, compiled step and eager loop."""
