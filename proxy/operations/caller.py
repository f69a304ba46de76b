"""What a request shows of whoever asks."""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from proxy.operations.doors import Caller


def caller(request: web.Request) -> Caller:
    """Return what the doors judge."""
    shown, certificate = request.headers, request.get_extra_info("peercert")
    return Caller(
        host=shown.get("Host", ""),
        origin=shown.get("Origin"),
        authorization=shown.get("Authorization"),
        has_certificate=bool(certificate),
        certificate=_name_in(certificate or {}),
    )


def _name_in(certificate: Mapping[str, Any]) -> str:
    """Return its common name, without one the first other name, of what `getpeercert` tells."""
    fields = [field for part in certificate.get("subject", ()) for field in part]
    names = [value for kind, value in fields if kind == "commonName"]
    return next(iter([*names, *(value for _, value in certificate.get("subjectAltName", ()))]), "without a name")
