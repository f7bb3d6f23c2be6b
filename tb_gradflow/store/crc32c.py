"""The checksums of event files (CRC-32C, RFC 3720), in C if `google_crc32c` is installed that way."""

from __future__ import annotations

from collections.abc import Callable

_POLYNOMIAL = 0x82F63B78


def in_c() -> Callable[[bytes], int] | None:
    """The function in C; None if there is none."""
    try:
        import google_crc32c
    except ImportError:
        return None
    value: Callable[[bytes], int] = google_crc32c.value
    return value if google_crc32c.implementation == "c" else None


def _in_python(data: bytes) -> int:
    """The same, about ten megabytes a second."""
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = _TABLE[(checksum ^ byte) & 0xFF] ^ (checksum >> 8)
    return checksum ^ 0xFFFFFFFF


def _row(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_row, range(256)))


def masked(checksum: int) -> int:
    """As the format of TFRecords has it."""
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum that is written behind `data`."""
    return masked((in_c() or _in_python)(data))
