"""Records the trainings of an unchanged program: each `fit`, compiled step and eager loop."""
