"""The version of this package, and nothing else: the build reads it, and every log contains it."""

VERSION = "0.1.0"
