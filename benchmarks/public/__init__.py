"""Public benchmarks of faulty training programs, from a checkout: what is reported, against what is wrong."""
