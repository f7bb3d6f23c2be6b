"""Which op feeds which in a trace, and the sets of op types that several rules need."""
