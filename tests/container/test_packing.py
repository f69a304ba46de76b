"""The image is small, and the same commit on the same base makes the same image."""

from pathlib import Path

import pytest

from load.container.engine import find_buildah

pytestmark = pytest.mark.timeout(600)

LARGEST = 150_000_000


@pytest.mark.long
def test_the_digest_is_the_same_and_small_when_the_image_is_built_twice(tmp_path: Path) -> None:
    buildah = find_buildah()
    told = []
    for number in range(2):
        image = buildah.build(f"localhost/tidegate-packing:{number}", anew=True)
        try:
            told.append(buildah.packed(image, tmp_path))
        finally:
            buildah.remove(image)
    (first, size), (second, _) = told
    assert first.startswith("sha256:")
    assert first == second
    print(f"{size / 1e6:.1f} MB compressed, {first}")  # noqa: T201 - seen with -s, or a failure
    assert size < LARGEST
