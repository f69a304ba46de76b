"""Whatever stands in a settings file, it loads or `SettingsError` names what is wrong; nothing else comes out."""

import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from croniter import croniter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proxy import config
from proxy.config.checks import is_cron
from proxy.config.summary import overlap
from proxy.errors import SettingsError
from proxy.settings import TypePattern
from proxy.settings.parts import split_host

EXAMPLE = (Path(__file__).parents[2] / "config" / "tidegate.yaml").read_text(encoding="utf-8")
COMPACT = "\n".join(line for line in EXAMPLE.splitlines() if line.strip() and not line.strip().startswith("# "))
SECRET = "hunter2-correct-horse"
ENVIRON = {"RABBITMQ_PASSWORD": SECRET, "KAFKA_HOST": "kafka:9092"}
TODAY = 1_795_300_000.0
FORM = re.compile(r"(?s).+?:[0-9]+: .+")

quick = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["5s", "1MiB", "P1", "${X}", "${KAFKA_HOST}", "${X:-}", "a:1", "*", "0 0 0 30 2 *", "\ud800"]),
)
keys = st.one_of(
    st.sampled_from(re.findall(r"[a-z_]{3,}(?=:)", COMPACT)),
    st.text(max_size=5),
    st.integers(),
    st.none(),
    st.booleans(),
)
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
)


class Outcome(NamedTuple):
    """What anybody is shown of a file."""

    mistakes: Sequence[str] | None
    """None if the file loads."""
    shown: str

    @property
    def is_explained(self) -> bool:
        """Tell whether the file loads, or every mistake is one line that names a place, in words of ours."""
        return self.mistakes is None or (bool(self.mistakes) and all(map(is_line_of_ours, self.mistakes)))


def is_line_of_ours(mistake: str) -> bool:
    foreign = re.search(r"Traceback|pydantic|Input should", mistake)
    return FORM.fullmatch(mistake) is not None and len(mistake.splitlines()) == 1 and foreign is None


def outcome(folder: Path, data: bytes) -> Outcome:
    """Load the bytes."""
    file = folder / "tidegate.yaml"
    file.write_bytes(data)
    try:
        loaded = config.load(file, ENVIRON)
    except SettingsError as error:
        return Outcome(error.mistakes, "\n".join(error.mistakes).encode().decode())
    lines = [repr(loaded), config.describe(loaded), config.as_json(loaded), *config.warnings(loaded)]
    return Outcome(None, "\n".join(lines))


@quick
@given(data=st.binary(max_size=200))
def test_only_settings_errors_come_out_when_the_file_is_any_bytes(tmp_path: Path, data: bytes) -> None:
    assert outcome(tmp_path, data).is_explained


@quick
@given(text=st.text(alphabet="\n #-:?,[]{}&*!|>'\"%@`<~ab0.$\\xuU\t", max_size=60))
def test_only_settings_errors_come_out_when_the_file_is_yaml_s_own_signs(tmp_path: Path, text: str) -> None:
    assert outcome(tmp_path, text.encode()).is_explained


@quick
@given(tree=trees)
def test_only_settings_errors_come_out_when_the_file_is_any_tree(tmp_path: Path, tree: Any) -> None:
    assert outcome(tmp_path, yaml.dump(tree).encode()).is_explained


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value in a tree."""
    found: list[tuple[Any, Any]] = []
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        found += [(tree, key), *places(value)]
    return found


@quick
@given(changes=st.lists(st.tuples(st.integers(0, 10_000), trees), min_size=1, max_size=4))
def test_no_secret_comes_out_when_values_of_the_example_are_exchanged(
    tmp_path: Path, changes: list[tuple[int, Any]]
) -> None:
    tree = yaml.load(COMPACT, yaml.BaseLoader)
    for place, value in changes:
        found = places(tree)
        container, key = found[place % len(found)]
        container[key] = value
    found_out = outcome(tmp_path, yaml.dump(tree).encode())
    assert found_out.is_explained
    assert SECRET not in found_out.shown


@quick
@given(data=st.data())
def test_no_secret_comes_out_when_the_text_of_the_example_is_damaged(tmp_path: Path, data: st.DataObject) -> None:
    text = COMPACT
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        text = (
            text[:start]
            + data.draw(st.text(max_size=5) | st.sampled_from(["\n", "  ", ": ", "- ", "{", "*a", "'"]))
            + text[end:]
        )
    found_out = outcome(tmp_path, text.encode(errors="surrogatepass"))
    assert found_out.is_explained
    if not re.search(r"(?<!password: )\$\{RABBITMQ_PASSWORD", text):  # in another's place it is what the user named so
        assert SECRET not in found_out.shown


@quick
@given(text=st.text(alphabet="0123456789*/,-#?LWHRlwhr ()@adejmnostuvy", max_size=30) | st.text(max_size=30))
def test_a_cron_expression_is_refused_or_comes_true_when_it_is_any_text(text: str) -> None:
    for cron in (text, f"0 {text} * * *", f"{text} * * * * *"):
        assert not is_cron(cron) or croniter(cron, TODAY, second_at_beginning=True).get_next(float) > TODAY


@pytest.mark.parametrize(
    "text", ["*/5 * * * * *", "0 0 12 * * mon-fri", "30 15 10 29 2 *", "0 0 0 L * *", "0 0 0 ? * 2#1"]
)
def test_a_cron_expression_is_taken_when_it_comes_true(text: str) -> None:
    assert is_cron(text)


@quick
@given(
    host=st.text(alphabet="aZ0.-_[]:", max_size=12)
    | st.lists(st.integers(0, 70), max_size=5).map(lambda lengths: ".".join("n" * length for length in lengths))
)
def test_the_resolver_takes_every_host_that_the_settings_take(host: str) -> None:
    try:
        name, _ = split_host(f"{host}:80")
    except ValueError:
        return
    assert name.encode("idna")


@pytest.mark.parametrize("host", ["a", "a.b", "a.b.", "0", "a_b-c.d", "n" * 63 + ".x", "127.0.0.1", "[::1]"])
def test_a_host_is_taken_when_names_are_made_so(host: str) -> None:
    assert split_host(f"{host}:80") == (host.strip("[]"), 80)


@given(first=st.text(alphabet="ab*?", min_size=1, max_size=5), second=st.text(alphabet="ab*?", min_size=1, max_size=5))
def test_patterns_overlap_when_a_topic_matches_both(first: str, second: str) -> None:
    # two patterns of five signs that share a text share one of at most eight
    patterns = [re.compile("".join({"*": ".*", "?": "."}.get(sign, sign) for sign in text)) for text in (first, second)]
    topics = ("".join(signs) for length in range(9) for signs in product("ab", repeat=length))
    assert overlap(first, second) == any(all(one.fullmatch(topic) for one in patterns) for topic in topics)


@given(
    topic=st.text(alphabet="ab.-_", min_size=1, max_size=8).filter(lambda name: name not in {".", ".."}),
    pattern=st.text(alphabet="ab.-_*?", min_size=1, max_size=6),
)
def test_an_event_type_is_made_when_a_topic_matches_a_pattern(topic: str, pattern: str) -> None:
    entry = TypePattern.model_validate({"pattern": pattern, "priority": "P1", "route": "r", "routing_key": "k"})
    signs = {"*": ".*", "?": "."}
    expected = re.fullmatch("".join(signs.get(sign) or re.escape(sign) for sign in pattern), topic) is not None
    assert entry.matches(topic) == (expected and not topic.startswith("__"))
    assert entry.event_type(topic).name == topic
