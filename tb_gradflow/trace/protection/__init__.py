"""Keeps faults of the recorder away from the training: everything that the recorder does for a training runs here.

It also keeps a training from being recorded twice: see `attention`.
"""
