"""Checksums of event files in C, for TensorBoard's Python loader.

Without TensorFlow and without the fast loader, TensorBoard computes the checksum of every byte in Python: ten megabytes
a second, which is nearly all of the time that a long log takes to open.
"""

from __future__ import annotations

# As in the definition of CRC-32C (RFC 3720, B.4).
_KNOWN = b"123456789", 0xE3069283


def quicken() -> bool:
    """Replaces the Python function by the same function in C, for this process. Returns whether that was possible."""
    try:
        import google_crc32c
        from tensorboard.compat.tensorflow_stub import pywrap_tensorflow
    except ImportError:
        return False
    numbers, checksum = _KNOWN
    theirs = getattr(pywrap_tensorflow, "crc32c", None)
    is_same = theirs is not None and google_crc32c.value(numbers) == checksum == theirs(numbers)
    if is_same and google_crc32c.implementation == "c":
        pywrap_tensorflow.crc32c = google_crc32c.value
        return True
    return False
