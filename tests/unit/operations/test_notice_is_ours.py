"""The recipient that the docs show believes what `webhook` signs, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

from proxy.operations.webhook import signature

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLE = DOCS / "examples" / "notice_is_ours.py"
_spec = importlib.util.spec_from_file_location("notice_is_ours", EXAMPLE)
assert _spec is not None
assert _spec.loader is not None
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)

AT, KEY, BODY = 1_700_000_000, b"k" * 16, b'{"v":1}'
OURS = signature(KEY.decode(), BODY, AT)


def test_a_notice_is_believed_when_it_is_signed_by_the_key_and_lately() -> None:
    assert all(example.is_ours(OURS, BODY, KEY, AT + late) for late in (-300, 0, 300))


@pytest.mark.parametrize(
    ("told", "body", "key", "now"),
    [
        pytest.param(OURS, BODY + b" ", KEY, AT, id="another body"),
        pytest.param(OURS, BODY, b"other", AT, id="another key"),
        pytest.param(OURS, BODY, KEY, AT + 301, id="sent again later"),
        pytest.param(OURS.replace(f"t={AT}", f"t={AT + 9}"), BODY, KEY, AT, id="another instant"),
        pytest.param("", BODY, KEY, AT, id="none"),
        pytest.param("t=,v1=", BODY, KEY, AT, id="nothing said"),
        pytest.param(f"t={AT}", BODY, KEY, AT, id="no sum"),
        pytest.param("v1=é,t=²", BODY, KEY, AT, id="no ASCII"),
    ],
)
def test_a_notice_is_not_believed_when_it_is_not_ours(told: str, body: bytes, key: bytes, now: int) -> None:
    assert not example.is_ours(told, body, key, now)


def test_the_recipient_shown_is_the_one_that_is_tested() -> None:
    _, _, code = EXAMPLE.read_text("utf-8").partition("import hashlib")
    assert f"```python\nimport hashlib{code}```" in (DOCS / "how-to" / "notices.md").read_text("utf-8")
