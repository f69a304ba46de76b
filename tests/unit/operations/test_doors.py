"""Who is let in at the admin address."""

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from proxy.access import admin_access
from proxy.operations.doors import SAID_EVERY_SECONDS, Caller, Doors, Refusal
from proxy.operations.endpoints import Openness
from proxy.settings import AdminSettings, AdminTls, Secret

TOKEN = "0123456789abcdef"
PROBE, FIGURES, GUARDED = Openness.PROBE, Openness.FIGURES, Openness.GUARDED
STRANGER = Caller(host="10.0.0.7:8080")
LOCAL = Caller(host="127.0.0.1:8080")


def doors(listen: str = "0.0.0.0:8080", *, token: bool = False, certificates: bool = False) -> Doors:
    bare = AdminSettings(listen=listen, token=Secret(SecretStr(TOKEN)) if token else None)
    tls = AdminTls(certificate_file="c", key_file="k", client_ca_file="ca" if certificates else None)
    settings = bare.model_copy(update={"tls": tls}) if certificates else bare
    return Doors(settings, admin_access(bare), lambda: 0.0)


def bearing(authorization: str) -> Caller:
    return Caller(host="10.0.0.7:8080", authorization=authorization)


@pytest.mark.parametrize("listen", ["127.0.0.1:8080", "[::1]:8080", "localhost:8080", "127.8.9.1:0"])
def test_everything_is_open_when_it_listens_on_a_loopback_address(listen: str) -> None:
    for openness in Openness:
        assert doors(listen).judge(openness, LOCAL) is None


@pytest.mark.parametrize("listen", ["0.0.0.0:8080", "[::]:8080", "10.0.0.7:8080", "tidegate:8080", "localhost.evil:1"])
def test_only_what_was_always_open_is_when_strangers_reach_it_and_nothing_can_prove_who_they_are(listen: str) -> None:
    made = doors(listen)
    assert made.judge(PROBE, STRANGER) is None
    assert made.judge(FIGURES, STRANGER) is None
    assert made.judge(GUARDED, STRANGER) is Refusal.UNGUARDED
    assert made.judge(GUARDED, bearing(f"Bearer {TOKEN}")) is Refusal.UNGUARDED
    assert made.judge(GUARDED, Caller(host="h", has_certificate=True)) is Refusal.UNGUARDED


@pytest.mark.parametrize("listen", ["0.0.0.0:8080", "127.0.0.1:8080"])
def test_all_but_probes_need_the_token_when_there_is_one(listen: str) -> None:
    made = doors(listen, token=True)
    assert made.judge(PROBE, STRANGER) is None
    for openness in (FIGURES, GUARDED):
        assert made.judge(openness, LOCAL) is Refusal.NO_PROOF
        assert made.judge(openness, bearing(f"Bearer {TOKEN}")) is None
        assert made.judge(openness, bearing(f"bearer  {TOKEN} ")) is None


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer ü",
        "\udcff",
    ],
)
def test_a_wrong_token_is_refused_whatever_it_is(shown: str) -> None:
    assert doors(token=True).judge(GUARDED, bearing(shown)) is Refusal.WRONG_TOKEN


def test_a_certificate_lets_in_when_its_authority_is_set_and_no_token_does_then() -> None:
    made = doors(certificates=True)
    assert made.judge(FIGURES, Caller(host="h", has_certificate=True)) is None
    assert made.judge(FIGURES, STRANGER) is Refusal.NO_PROOF
    assert made.judge(GUARDED, bearing(f"Bearer {TOKEN}")) is Refusal.NO_PROOF


def test_no_page_of_another_origin_changes_anything_by_the_certificate_that_a_browser_shows_for_it() -> None:
    made = doors(certificates=True, token=True)
    led = Caller(host="tidegate:8080", origin="https://evil.example", has_certificate=True)
    assert made.judge(Openness.CHANGES, led) is Refusal.FOREIGN_NAME
    assert made.judge(GUARDED, led) is None
    own = Caller(host="tidegate:8080", origin="https://tidegate:8080", has_certificate=True)
    assert made.judge(Openness.CHANGES, own) is None
    behind_a_proxy = Caller(host="tidegate:8080", origin="https://ops.example", authorization=f"Bearer {TOKEN}")
    assert made.judge(Openness.CHANGES, behind_a_proxy) is None


def test_whoever_is_let_in_is_called_by_what_was_proved_and_by_nothing_they_say() -> None:
    both, none = doors(certificates=True, token=True), doors("127.0.0.1:8080")
    shown = Caller(host="h", has_certificate=True, certificate="ann", authorization=f"Bearer {TOKEN}")
    assert both.name(shown, "10.0.0.9") == "certificate ann"
    assert both.name(bearing(f"Bearer {TOKEN}"), "10.0.0.9") == "token"
    assert none.name(LOCAL, "127.0.0.1") == "127.0.0.1"


def test_token_or_certificate_lets_in_when_both_are_set() -> None:
    made = doors(certificates=True, token=True)
    assert made.judge(GUARDED, Caller(host="h", has_certificate=True)) is None
    assert made.judge(GUARDED, bearing(f"Bearer {TOKEN}")) is None
    assert made.judge(GUARDED, STRANGER) is Refusal.NO_PROOF


@pytest.mark.parametrize(
    "caller",
    [
        Caller(host="evil.example"),
        Caller(host="evil.example:8080"),
        Caller(host=""),
        Caller(host="[::1"),
        Caller(host="127.0.0.1:8080", origin="https://evil.example"),
        Caller(host="127.0.0.1:8080", origin="http://127.0.0.1:3000"),
        Caller(host="127.0.0.1:8080", origin="null"),
    ],
)
def test_a_page_from_elsewhere_is_refused_when_it_asks_on_a_loopback_address(caller: Caller) -> None:
    assert doors("127.0.0.1:8080").judge(GUARDED, caller) is Refusal.FOREIGN_NAME


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:8080", "[::1]"])
def test_its_own_page_is_let_in_when_it_asks_on_a_loopback_address(host: str) -> None:
    made = doors("127.0.0.1:8080")
    assert made.judge(GUARDED, Caller(host=host)) is None
    assert made.judge(GUARDED, Caller(host=host, origin=f"http://{host}")) is None


def test_refusals_are_all_counted_and_said_once_a_minute_when_they_come_by_the_thousand() -> None:
    now = 0.0
    made = Doors(AdminSettings(listen="0.0.0.0:1"), admin_access(AdminSettings()), lambda: now)
    with capture_logs() as said:
        for _ in range(1_000):
            made.on_refused(Refusal.WRONG_TOKEN, "10.0.0.9")
        now = SAID_EVERY_SECONDS
        made.on_refused(Refusal.WRONG_TOKEN, "10.0.0.8")
        made.on_refused(Refusal.NO_PROOF, "10.0.0.8")
    assert [(one["why"], one["last_from"], one["times"]) for one in said] == [
        ("wrong_token", "10.0.0.9", 1),
        ("wrong_token", "10.0.0.8", 1_000),
        ("no_proof", "10.0.0.8", 1),
    ]
    counts = {one.labels["why"]: one.value for family in made.families() for one in family.samples}
    assert counts == dict.fromkeys(map(str, Refusal), 0) | {"wrong_token": 1_001, "no_proof": 1}
