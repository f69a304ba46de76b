"""What an image holds, as CycloneDX JSON: one environment's distributions, their Python, the system's packages.

Runs while the image is built, by the Python of the build's tools, and needs nothing else of this checkout. The same
image gives the same text: no time, no serial number, everything in order.
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

VERSION = SchemaVersion.V1_6
SECONDS = 120.0
OURS = "tidegate"
_COLUMNS = (
    "${Package}",
    "${Version}",
    "${Architecture}",
    "${source:Package}",
    "${source:Version}",
    "${db:Status-Status}",
)


def document(python: Path) -> dict[str, Any]:
    """Return what the environment of this Python and the system hold. Raises ValueError if it is no CycloneDX."""
    found: dict[str, Any] = json.loads(
        _said(
            sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible",
            f"--spec-version={VERSION.to_version()}", str(python),
        )
    )  # fmt: skip
    ours = next(one for one in found["components"] if one["name"] == OURS)
    image = {"type": "container", "bom-ref": "image", "name": OURS, "version": ours["version"]}
    found["metadata"]["component"] = image
    system = [_python(_said(str(python), "-c", "import platform; print(platform.python_version())").strip())]
    if shutil.which("dpkg-query"):
        listing = _said("dpkg-query", "--show", "--showformat=" + "\\t".join(_COLUMNS) + "\\n")
        system += debian_components(listing.splitlines(), platform.freedesktop_os_release())
    else:
        print("No dpkg here: the packages of the system are not in the SBOM.", file=sys.stderr)
    found["components"] += system
    told = json.dumps(found)
    if mistake := JsonStrictValidator(VERSION).validate_str(told):
        raise ValueError(f"what was made is no CycloneDX {VERSION.to_version()}: {mistake}")
    return found


def debian_components(lines: Iterable[str], release: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield a component for each installed package that dpkg lists, in its order; `release` is /etc/os-release."""
    distro = "-".join(filter(None, (release.get("ID"), release.get("VERSION_ID"))))
    for line in lines:
        name, version, architecture, source, source_version, state = line.split("\t")
        if state != "installed":
            continue
        qualifiers = {"arch": architecture, "distro": distro}
        if (source, source_version) != (name, version):
            qualifiers["upstream"] = source if source_version == version else f"{source}@{source_version}"
        purl = PackageURL("deb", release.get("ID"), name, version, qualifiers).to_string()
        yield {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def _python(version: str) -> dict[str, Any]:
    """Return the interpreter, which the official Python images have beside the system's packages."""
    if not re.fullmatch(r"\d+\.\d+\.\d+\S*", version):
        raise ValueError(f"{version!r} is no version of Python")
    purl = PackageURL("generic", None, "python", version).to_string()
    return {"type": "platform", "bom-ref": purl, "name": "python", "version": version, "purl": purl}


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS).stdout


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path, help="the Python of the environment")
    parser.add_argument("file", type=Path, help="what is written")
    options = parser.parse_args()
    options.file.write_text(json.dumps(document(options.python), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
