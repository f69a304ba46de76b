"""The secrets of a test on secured listeners: written, exchanged, and told to the brokers."""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from load.stack import Stack
from load.stack.authority import token
from load.stack.kafka_users import change_password

SCOPES = "rabbitmq.configure:*/* rabbitmq.write:*/* rabbitmq.read:*/*"


class Secrets:
    """What the settings name, in a folder, and the other side of each exchange."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack = stack
        self.folder = folder
        self.ca = str(stack.authority.certificate)
        self.user = f"user-{uuid4().hex[:8]}"

    def log(self, protocol: str, **security: Any) -> dict[str, Any]:
        listener = "kafka_mtls" if protocol == "SSL" else "kafka_tls"
        return {
            "hosts": [self.stack.secured[listener]],
            "security": {"protocol": protocol, "ca_file": self.ca} | security,
        }

    def broker(self, tls: dict[str, str] | None = None, **login: Any) -> dict[str, Any]:
        return {"hosts": [self.stack.secured["amqps"]], "tls": {"ca_file": self.ca} | (tls or {})} | login

    def write(self, name: str, text: str) -> str:
        """Replace a file as a careful operator does."""
        (self.folder / "next").write_text(text)
        (self.folder / "next").rename(self.folder / name)
        return name

    def certificate(self, name: str) -> dict[str, str]:
        """Replace certificate and key, one after the other."""
        into = self.folder / "next"
        self.stack.authority.issue(name, into)
        for end in ("pem", "key"):
            shutil.move(f"{into}.{end}", self.folder / f"client.{end}")
        return {
            "certificate_file": str(self.folder / "client.pem"),
            "key_file": str(self.folder / "client.key"),
        }

    def kafka_token(self, life: float = 60) -> str:
        now = time.time()
        return token({"sub": "tidegate", "iat": now, "exp": now + life, "jti": uuid4().hex}, key=None)

    def rabbitmq_token(self, life: float = 60) -> str:
        return token({"aud": ["rabbitmq"], "scope": SCOPES, "exp": time.time() + life, "jti": uuid4().hex})

    async def rabbitmq_user(self, password: str) -> None:
        await self.control("add_user", self.user, password)
        await self.control("set_permissions", self.user, ".*", ".*", ".*")

    async def control(self, *arguments: str) -> None:
        await asyncio.to_thread(self.stack.rabbitmqctl, *arguments)

    async def kafka_password(self, password: str, mechanism: str) -> None:
        await asyncio.to_thread(change_password, self.stack.kafka_ports[0], "tidegate", password, mechanism)
