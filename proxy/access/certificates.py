"""When certificates expire, read out of their bytes: Python's `ssl` tells it only of the one a server shows.

A certificate is DER: SEQUENCE { SEQUENCE { [0] version, serial, algorithm, issuer, SEQUENCE { notBefore, notAfter }
(RFC 5280, 4.1).
"""

import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _VERSION, _UTC_TIME = 0x30, 0xA0, 0x17
_LONG = 0x80
_LONGEST_LENGTH = 4
_CENTURY_TURN = 50
"""Two-digit years below it are of this century (RFC 5280, 4.1.2.5.1)."""


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when a certificate is valid, in seconds since 1970."""

    begins: float
    ends: float


def validity(der: bytes) -> Validity:
    """Return the validity of one certificate. Raises `ValueError` if it is none."""
    try:
        fields = _inside(_inside(der, 0), 0)
        at = 0
        if fields[0] == _VERSION:
            at = _end(fields, at)
        for _ in ("serial", "algorithm", "issuer"):
            at = _end(fields, at)
        times = _inside(fields, at)
        return Validity(_time(times, 0), _time(times, _end(times, 0)))
    except (IndexError, UnicodeDecodeError) as error:
        raise ValueError("is no certificate") from error


def validities(pem: bytes) -> list[Validity]:
    """Return those of all certificates in a PEM file, in its order. Raises `ValueError` if there is none."""
    found = [validity(ssl.PEM_cert_to_DER_cert(block.decode("ascii"))) for block in _PEM.findall(pem)]
    if not found:
        raise ValueError("holds no certificate")
    return found


def _inside(der: bytes, at: int) -> bytes:
    if der[at] != _SEQUENCE:
        raise ValueError("is no certificate")
    begin, end = _extent(der, at)
    return der[begin:end]


def _end(der: bytes, at: int) -> int:
    return _extent(der, at)[1]


def _extent(der: bytes, at: int) -> tuple[int, int]:
    """Return where the value that stands at `at` begins and ends."""
    length, begin = der[at + 1], at + 2
    if length >= _LONG:
        size = length - _LONG
        if not 0 < size <= _LONGEST_LENGTH:
            raise ValueError("is no certificate")
        length, begin = int.from_bytes(der[begin : begin + size], "big"), begin + size
    if begin + length > len(der):
        raise ValueError("is no certificate")
    return begin, begin + length


def _time(der: bytes, at: int) -> float:
    begin, end = _extent(der, at)
    text = der[begin:end].decode("ascii")
    if der[at] == _UTC_TIME:
        text = ("20" if int(text[:2]) < _CENTURY_TURN else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
