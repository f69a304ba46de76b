"""A throw-away authority: certificates for servers and clients by openssl, tokens signed by a key everybody knows."""

import base64
import hashlib
import hmac
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load.stack.errors import SetupError, StackError

TOKEN_KEY = b"a-key-for-tokens-that-everybody-knows-0123456789"
OPENSSL_SECONDS = 30.0


@dataclass(frozen=True)
class Authority:
    """One that lives in a folder; made there the first time. Raises SetupError without openssl."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """PEM file of its own certificate, to be trusted."""
        return self.folder / "ca.pem"

    def issue(self, name: str, into: Path, *, days: int = 90) -> tuple[Path, Path]:
        """Write `into`.pem and `into`.key for localhost and 127.0.0.1, subject CN=`name`; return both."""
        self._found()
        certificate, key, request = (into.with_name(f"{into.name}{end}") for end in (".pem", ".key", ".csr"))
        _openssl(*_KEY, "-out", key)
        _openssl("req", "-new", "-key", key, "-subj", f"/CN={name}", "-out", request)
        extensions = self.folder / "extensions"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        signing = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-extfile", extensions)
        _openssl("x509", "-req", "-in", request, *signing, "-days", str(days), "-out", certificate)
        request.unlink()
        return certificate, key

    def _found(self) -> None:
        if self.certificate.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        _openssl(*_KEY, "-out", self._key)
        subject = ("-subj", "/CN=tidegate throw-away authority", "-days", "365")
        _openssl("req", "-x509", "-key", self._key, *subject, "-out", self.certificate)

    @property
    def _key(self) -> Path:
        return self.folder / "ca.key"


_KEY = ("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")


def token(claims: dict[str, Any], key: bytes | None = TOKEN_KEY) -> str:
    """Return a JWT with these claims, signed with the key (HS256); unsecured without one."""
    head = {"typ": "JWT", "alg": "none"} if key is None else {"typ": "JWT", "alg": "HS256", "kid": "known"}
    signed = ".".join(_base64(json.dumps(part).encode()) for part in (head, claims))
    return f"{signed}.{'' if key is None else _base64(hmac.digest(key, signed.encode(), hashlib.sha256))}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _openssl(*arguments: str | Path) -> None:
    try:
        subprocess.run(
            ["openssl", *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=OPENSSL_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise SetupError("openssl is missing: install it") from error
    except subprocess.CalledProcessError as error:
        raise StackError(f"openssl {arguments[0]} failed:\n{error.stderr}") from error
