"""Models with a disease, each beside its cure: what `tb-gradflow demo` trains.

A program's first line promises the diagnosis; `tests/demo` holds it to that. Importing this package loads no
TensorFlow, importing a program does.
"""
