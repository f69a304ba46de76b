"""Where settings come from beside the main file: included files, the environment, secrets."""

import os
import socket
from pathlib import Path

import pytest

from proxy import config
from proxy.access import broker_access
from proxy.errors import SettingsError
from proxy.settings import AdminSettings
from tests.support.settings_files import HEAD, ONE_TYPE, Files

SECRET = "hunter2-correct-horse"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_the_file_is_refused_when_it_is_missing_or_no_text(files: Files) -> None:
    with pytest.raises(SettingsError, match=r"tidegate\.yaml:1: can't be read: No such file or directory"):
        config.load(files.main, {})
    files.main.write_bytes(b"log: 1\n\xff")
    with pytest.raises(SettingsError, match=r"tidegate\.yaml:2: is not UTF-8"):
        config.load(files.main, {})
    files.main.write_bytes(b"#" * (4 * 1024**2 + 1))
    with pytest.raises(SettingsError, match=r"tidegate\.yaml:1: is too large"):
        config.load(files.main, {})


@pytest.mark.parametrize(
    ("made", "kind"), [("folder", "a folder"), ("pipe", "a pipe"), ("socket", "a socket"), ("link", "a device")]
)
def test_the_file_is_refused_at_once_when_it_is_no_plain_file(
    files: Files, monkeypatch: pytest.MonkeyPatch, made: str, kind: str
) -> None:
    place = files.main
    match made:
        case "folder":
            place.mkdir()
        case "pipe":
            os.mkfifo(place)  # nobody ever writes to it
        case "socket":
            monkeypatch.chdir(files.folder)  # the name of a socket must be short
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(place.name)
        case "link":
            place.symlink_to("/dev/zero")
    with pytest.raises(SettingsError) as refused:
        config.load(place, {})
    assert refused.value.mistakes == [f"{place}:1: can't be read: it is {kind}; give a plain file"]


def test_included_files_add_to_the_main_one_in_order_of_name_when_a_folder_is_given(files: Files) -> None:
    files.write("more/b.yaml", "event_types: {from-b: {route: extra}}\n")
    files.write("more/a.yml", "routes: {extra: {exchange: x}}\nevent_types: {from-a: {class: low}}\n")
    files.write("more/c.yaml", "classes: {low: {increase: 1, decrease: 0.5}}\n")
    files.write("more/ignored.txt", "[")
    settings = files.load("include: more\nclasses: {P2: }\n" + HEAD + ONE_TYPE)
    assert list(settings.event_types) == ["order-confirmed", "from-a", "from-b"]
    assert list(settings.classes) == ["P2", "low"]
    assert list(settings.routes) == ["mails", "pushes", "extra"]


def test_both_places_are_named_when_an_included_file_defines_a_name_again(files: Files) -> None:
    files.write("more/a.yaml", "\nroutes:\n  mails: {exchange: x}\nlog: {}\n")
    files.write("more/b.yaml", "event_types:\n  x: {order: later}\n")
    found = files.mistakes("include: more\n" + HEAD + ONE_TYPE)
    assert found == [
        f"more/a.yaml:3: routes.mails: is already defined at {files.main}:5; keep one",
        "more/a.yaml:4: log: belongs into the main file; allowed in an included one: routes, classes, event_types",
        'more/b.yaml:2: event_types.x.order: "later" is unknown; allowed: partition, strict, none',
    ]


def test_the_include_itself_is_a_mistake_when_it_is_no_folder(files: Files) -> None:
    assert files.mistakes("include: nowhere\n" + HEAD + ONE_TYPE) == [
        "tidegate.yaml:1: include: can't be read: No such file or directory; allowed: a folder, relative to this file"
    ]
    assert files.mistakes("include: [a]\n" + HEAD + ONE_TYPE) == [
        "tidegate.yaml:1: include: is no folder; allowed: the path of one, relative to this file"
    ]


def test_an_included_file_is_told_of_when_it_can_not_be_used(files: Files) -> None:
    files.write("more/a.yaml", "[1]\n")
    files.write("more/b.yaml", "routes: [x]\nclasses:\nevent_types: {a: [\n")
    files.write("more/c.yaml", "routes: [x]\nclasses:\n")
    (files.folder / "more" / "d.yaml").mkdir()
    found = files.mistakes("include: more\n" + HEAD + ONE_TYPE)
    assert [mistake.partition(";")[0] for mistake in found] == [
        "more/a.yaml:1: the file must be a mapping",
        "more/b.yaml:4: not valid YAML: expected the node content, but found '<stream end>'",
        "more/c.yaml:1: routes: must be a mapping from names",
        "more/d.yaml:1: can't be read: it is a folder",
    ]


def test_an_included_file_alone_may_define_the_routes_when_the_main_file_has_none(files: Files) -> None:
    files.write("more/a.yaml", "routes: {mails: {exchange: x}}\n")
    head, defaults = HEAD.partition("routes:")[0], HEAD.splitlines()[-1] + "\n"
    assert files.load("include: more\n" + head + defaults + ONE_TYPE).routes["mails"].exchange == "x"


def test_the_file_is_told_of_when_its_name_can_be_no_file_s(files: Files) -> None:
    assert files.mistakes('include: "a\\0b"\n' + HEAD + ONE_TYPE) == [
        "tidegate.yaml:1: include: can't be read: no folder can be called so; allowed: a folder, relative to this file"
    ]
    text = HEAD.replace('["localhost:5672"]', '["a:1"], password: {file: "a\\0b"}') + ONE_TYPE
    words = f"the secret's file {files.folder}/a\\x00b can't be read: no file can be called so"
    assert files.mistakes(text) == [f"tidegate.yaml:2: broker.password: {words}"]


def test_the_folder_is_told_of_when_it_holds_too_many_files(files: Files) -> None:
    for number in range(1_001):
        files.write(f"more/{number:04}.yaml", "")
    found = files.mistakes("include: more\n" + HEAD + ONE_TYPE)
    assert found == ["tidegate.yaml:1: include: holds 1001 files; allowed: at most 1000"]


def test_variables_are_filled_in_when_the_environment_has_them(files: Files) -> None:
    text = HEAD.replace("group: tidegate", 'group: "${TEAM}-$${x}", session_timeout: "${SESSION:-7}"') + ONE_TYPE
    text = text.replace("queues: [mail]", 'in_flight_events: "${WINDOW:-50}"') + "metric_log:\n  folder: ${FOLDER:-}\n"
    settings = files.load(text, {"TEAM": "blue", "SESSION": ""})
    assert settings.log.group == "blue-${x}"
    assert settings.log.session_timeout == 7.0
    assert settings.routes["mails"].in_flight_events == 50
    assert settings.metric_log.folder is None


def test_the_variable_is_named_once_when_it_is_not_set(files: Files) -> None:
    text = HEAD.replace("group: tidegate", 'group: "${TEAM}"').replace("route: mails", 'route: "${ROUTE}"') + ONE_TYPE
    assert files.mistakes(text) == [
        "tidegate.yaml:1: log.group: environment variable TEAM is not set; set it or write ${NAME:-default}",
        "tidegate.yaml:6: defaults.route: environment variable ROUTE is not set; set it or write ${NAME:-default}",
    ]


def test_what_is_wrong_in_a_block_is_no_mistake_when_the_block_is_done_without(files: Files) -> None:
    text = (
        HEAD.replace('broker: {hosts: ["localhost:5672"', 'broker: {password: "${RABBIT}", hosts: ["${HOSTS}"')
        + ONE_TYPE
    )
    text += 'admin: {listen: "127.0.0.1:${PORT}", token: {file: /none}}\n<<: {admin: {listen: "${TOO}"}}\n'
    names = [mistake.partition("variable ")[2].partition(" ")[0] for mistake in files.mistakes(text)]
    assert [name for name in names if name] == ["HOSTS", "RABBIT", "PORT", "TOO"]
    settings = config.load(files.main, {}, config.Inspection(0.0), without=("broker", "admin"))
    assert settings.admin == AdminSettings()
    assert list(settings.event_types) == ["order-confirmed"]


@pytest.mark.parametrize("reference", ["${", "${}", "${1}", "${A-b}", "${A B}"])
def test_a_reference_is_a_mistake_when_it_is_malformed(files: Files, reference: str) -> None:
    found = files.mistakes(HEAD.replace("group: tidegate", f'group: "{reference}"') + ONE_TYPE)
    assert found == [
        "tidegate.yaml:1: log.group: has a bad `${`; allowed: ${NAME}, ${NAME:-default}, and $${ for ${ itself"
    ]


def test_the_secret_is_read_without_its_line_end_when_a_file_is_named(files: Files) -> None:
    files.write("secret", "hunter2 \n")
    settings = files.load(HEAD.replace('["localhost:5672"]', '["a:1"], password: {file: secret}') + ONE_TYPE)
    assert broker_access(settings.broker).password == "hunter2 "


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("{file: nowhere}", "the secret's file FOLDER/nowhere can't be read: No such file or directory"),
        ("{file: empty}", "the secret's file FOLDER/empty is empty"),
        ("{file: latin}", "the secret's file FOLDER/latin is not UTF-8; save it in that encoding"),
        ("{file: long}", "the secret's file FOLDER/long is longer than 1048576 bytes"),
        ("{file: .}", "the secret's file FOLDER can't be read: it is a folder; give a plain file"),
        ("{file: /dev/zero}", "the secret's file /dev/zero can't be read: it is a device; give a plain file"),
        ("{file: 5}", "has no file; allowed: {file: PATH}"),
        ("{flie: x}", "must be a text (a number in quotes), ${NAME} or {file: PATH}"),
        ("12345", "must be a text (a number in quotes), ${NAME} or {file: PATH}"),
        ("null", "is null; allowed: a text, ${NAME} or {file: PATH}"),
    ],
)
def test_the_secret_is_a_mistake_when_it_can_not_be_had(files: Files, password: str, expected: str) -> None:
    files.write("empty", "\n")
    files.write("long", "hunter2 " * 2**17 + "x")
    (files.folder / "latin").write_bytes(b"hunter2\xff")
    found = files.mistakes(HEAD.replace('["localhost:5672"]', f'["a:1"], password: {password}') + ONE_TYPE)
    assert len(found) == 1
    shown = found[0].replace(str(files.folder), "FOLDER")
    assert shown.startswith(f"tidegate.yaml:2: broker.password: {expected}"), found
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "broker",
    [
        f"password: {SECRET}",
        'password: "${PASSWORD}"',
        "password: {file: secret}",
        f"pasword: {SECRET}",
        f"password: [{SECRET}]",
        f"password: {{file: {{a: {SECRET}}}}}",
        f"password: *{SECRET}",
        f"password: !{SECRET} x",
        f"password: &{SECRET} x, username: &{SECRET} y",
        f"password: !{SECRET}!b x",
        f'password: "{SECRET}',
        f"password: '{SECRET}'x",
        f"password: %{SECRET}, username: @{SECRET}",
        'username: "${PASSWORD}", virtual_host: "${PASSWORD}x", heartbeat: "${PASSWORD}", hosts: ["${PASSWORD}"]',
    ],
)
@pytest.mark.parametrize("also_wrong", [False, True])
def test_no_secret_is_in_any_message_or_summary_when_there_is_one(files: Files, broker: str, also_wrong: bool) -> None:
    files.write("secret", SECRET)
    text = HEAD.replace('["localhost:5672"]}', f'["a:1"], {broker}}}') + ONE_TYPE + ("x: 1\n" if also_wrong else "")
    text = text.replace("route: mails", 'route: "${ROUTE}"')
    try:
        settings = files.load(text, {"PASSWORD": SECRET, "ROUTE": SECRET if also_wrong else "mails"})
    except SettingsError as error:
        shown = str(error)
    else:
        shown = "\n".join(
            [
                repr(settings),
                str(settings),
                config.describe(settings),
                config.as_json(settings),
                *config.warnings(settings),
            ]
        )
    assert SECRET not in shown
