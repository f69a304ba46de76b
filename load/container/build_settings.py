"""How pip inside a build reaches packages: as the machine's own pip does, by secrets that the image doesn't keep."""

import ast
import configparser
import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

from load.container.commands import ask

HANDED_ON = frozenset(
    {
        "index-url",
        "extra-index-url",
        "trusted-host",
        "proxy",
        "timeout",
        "default-timeout",
        "retries",
        "no-index",
        "find-links",
    }
)
"""Settings that mean the same inside an image; everything else is about the machine itself."""

# From the general to the particular, as pip weighs them.
SECTIONS = ("global", "install", ":env:")
CA_FILE = "/run/secrets/ca.pem"


def write_secrets(folder: Path) -> dict[str, Path]:
    """Write what the Dockerfile's secrets may hold into a private folder and return the files by the secrets' ids."""
    files = {"pip.conf": folder / "pip.conf"}
    settings = configparser.ConfigParser(interpolation=None)
    settings["global"] = pip_settings(ask(sys.executable, "-m", "pip", "config", "list"))
    authorities = _authorities()
    if authorities is not None:
        settings["global"]["cert"] = CA_FILE
        files["ca.pem"] = folder / "ca.pem"
        files["ca.pem"].write_bytes(authorities.read_bytes())
    with files["pip.conf"].open("w") as file:
        settings.write(file)
    return files


def pip_settings(listing: str) -> dict[str, str]:
    """Return what an image can use of what `pip config list` prints; it can't use folders of this machine."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if section in found and key in HANDED_ON:
            found[section][key] = ast.literal_eval(value)
    merged = found["global"] | found["install"] | found[":env:"]
    links = [link for link in merged.pop("find-links", "").split() if "://" in link and not link.startswith("file:")]
    return merged | ({"find-links": "\n".join(links)} if links else {})


def _authorities(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the machine's bundle of certificate authorities, where it has one."""
    named = (environment.get(name) for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"))
    usual = (ssl.get_default_verify_paths().cafile, "/etc/ssl/certs/ca-certificates.crt")
    return next((Path(path) for path in (*named, *usual) if path and Path(path).is_file()), None)
