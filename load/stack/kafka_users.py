"""Changing a SCRAM password of a running Kafka, as an operator does when it is rotated (KIP-554)."""

import hashlib
import os
import struct

from load.stack import probes
from load.stack.errors import StackError

ALTER_USER_SCRAM_CREDENTIALS = 51
ITERATIONS = 4096
MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


def change_password(port: int, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> None:
    """Have the user log in with another password from now on; `port` is that of a listener with all rights.

    Raises StackError when Kafka refuses or does not answer.
    """
    number, digest = MECHANISMS[mechanism]
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
    upsertion = _compact(user.encode()) + struct.pack(">bi", number, ITERATIONS) + _compact(salt) + _compact(salted)
    body = b"\x01" + b"\x02" + upsertion + b"\x00" + b"\x00"  # no deletions, one upsertion; tags of it and of all
    try:
        answer = probes.kafka_call(
            port, ALTER_USER_SCRAM_CREDENTIALS, 0, b"\x00" + body
        )  # the header's tags come first
    except probes.NotReadyError as error:
        raise StackError(f"Kafka no longer answers: {error}") from error
    at = 1 + 4 + 1  # tags of the header, throttle time, number of results
    at += answer[at]  # the user's name, whose length is written one too large
    (error_code,) = struct.unpack_from(">h", answer, at)
    if error_code:
        raise StackError(f"Kafka refuses the new password of {user} (error {error_code})")


def _compact(data: bytes) -> bytes:
    assert len(data) < 127, "one byte holds the length"
    return bytes([len(data) + 1]) + data
