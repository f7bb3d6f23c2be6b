"""Models that do not train, each with its fixed version: the programs of `tb-gradflow demo`.

The first line of a program states the expected cause; `tests/demo` checks it. Importing this package does not load
TensorFlow; importing a program does.
"""
