"""Debian's packages as the SBOM of the image names them."""

from load.container.sbom import debian_components

RELEASE = {"ID": "debian", "VERSION_ID": "12"}


def test_a_package_has_its_version_and_its_source_when_dpkg_lists_it() -> None:
    lines = [
        "base-files\t12.4\tamd64\tbase-files\t12.4\tinstalled",
        "libgcc-s1\t12.2.0-14\tamd64\tgcc-12\t12.2.0-14\tinstalled",
        "libuuid1\t1:2.38.1-5\tamd64\tutil-linux\t2.38.1-5\tinstalled",
    ]
    purls = [one["purl"] for one in debian_components(lines, RELEASE)]
    assert purls == [
        "pkg:deb/debian/base-files@12.4?arch=amd64&distro=debian-12",
        "pkg:deb/debian/libgcc-s1@12.2.0-14?arch=amd64&distro=debian-12&upstream=gcc-12",
        "pkg:deb/debian/libuuid1@1:2.38.1-5?arch=amd64&distro=debian-12&upstream=util-linux%402.38.1-5",
    ]


def test_a_package_is_left_out_when_only_its_settings_are_left() -> None:
    assert [*debian_components(["old\t1\tall\told\t1\tconfig-files"], RELEASE)] == []
