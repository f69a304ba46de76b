"""JSON of others."""

import pytest

from proxy.json_text import read_json


def test_json_is_read_from_bytes_and_text() -> None:
    assert read_json(b'{"a": [1]}') == read_json('{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize("text", [b"", b"\xff", b"{", "[" * 100_000, '{"a":' * 100_000], ids=lambda text: str(text[:5]))
def test_one_kind_of_error_is_raised_when_it_is_none_or_nested_too_deeply(text: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|decode|nested"):
        read_json(text)
