"""Whether a notice comes from who has the key, and lately: what a recipient asks before it believes one."""

import hashlib
import hmac

OLDEST = 300
"""Seconds that a signature counts; one that is kept and sent again later does not."""


def is_ours(signature: str, body: bytes, key: bytes, now: float) -> bool:
    """Return whether `signature`, the header Tidegate-Signature, is that of the body as it came, byte by byte."""
    told = dict(part.partition("=")[::2] for part in signature.split(","))
    signed_at, sum_told = told.get("t", ""), told.get("v1", "")
    if not (signed_at.isascii() and signed_at.isdecimal() and sum_told.isascii()):
        return False
    made = hmac.new(key, signed_at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(made, sum_told) and abs(now - int(signed_at)) <= OLDEST
