"""When certificates expire, read out of their bytes."""

import ssl
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.stack.authority import Authority
from proxy.access.certificates import validities, validity

DAY = 86_400.0


def test_the_dates_are_those_of_the_certificate_when_it_is_a_pem_file(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("anyone", tmp_path / "anyone", days=10)
    now = time.time()
    [valid] = validities(key.read_bytes() + certificate.read_bytes())
    assert now - 60 < valid.begins <= now
    assert valid.ends == pytest.approx(valid.begins + 10 * DAY, abs=2)


def test_every_certificate_of_a_bundle_is_read_when_the_machine_has_one() -> None:
    bundle = ssl.get_default_verify_paths().cafile
    if bundle is None:
        return
    found = validities(Path(bundle).read_bytes())
    assert len(found) > 10
    assert all(valid.begins < valid.ends for valid in found)


def test_dates_beyond_2049_are_read_when_a_certificate_lives_so_long(tmp_path: Path) -> None:
    certificate, _ = Authority(tmp_path).issue("anyone", tmp_path / "anyone", days=40_000)
    [valid] = validities(certificate.read_bytes())
    assert valid.ends - valid.begins == pytest.approx(40_000 * DAY, abs=2)


@given(data=st.binary(max_size=200) | st.binary(max_size=60).map(lambda end: b"\x30\x82\x01\x00\x30" + end))
def test_anything_else_is_no_certificate_when_it_is_read_as_one(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"certificate|time data|invalid|unconverted"):
        validity(data)
