"""Public benchmarks of faulty training programs, run from a checkout of theirs: what is reported, against what is wrong."""
