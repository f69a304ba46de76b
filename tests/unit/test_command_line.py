"""What is wrong with the arguments is said before anything is read."""

from collections.abc import Sequence

import pytest

from proxy.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("run", "-c", "one.yaml", "--config", "two.yaml"),
            'given twice, "one.yaml" and "two.yaml"; name one file, which may `include` others',
        ),
        (("check", "-c", ""), "names no file; give the path of the settings, like tidegate.yaml"),
    ],
)
def test_a_settings_file_is_refused_when_it_is_named_twice_or_not_at_all(
    arguments: Sequence[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith(f"argument -c/--config: {told}\n")
