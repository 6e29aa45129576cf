"""Properties: nothing crashes lint, a foreign key is always found, and a quiet configuration means what it says."""

import json
import random
import re
import string
from pathlib import Path
from typing import Any

import yaml
from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.lint import Options, lint
from gpufleet.lint.node import parse_node
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.lint.told import GPU4, codes, config_map, told

EXAMPLES = Path(__file__).parents[3] / "examples" / "articles"
OPTIONS = (
    Options(),
    Options(node=parse_node("4xA100-80GB", "0=1g.10gb,2g.20gb"), driver="535.1"),
    Options(node=parse_node("2xT4"), env={"MIG_STRATEGY": "single"}, driver="580.65.06"),
)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 4.5, "", "x", "nvidia.com/gpu", "default", [], {}, [None], [1, "a"], {"name": "x"},
    {"a": {"b": 1}}, "all", "Exists", "0.5", "v1", [{"name": "A", "value": 1}], [[]], "version: v1\nsharing: {}\n",
)  # fmt: skip
NOISE = ("\t", "\n", "\r", "\x00", "---\n", "- ", "{{", "<<: ", "&a ", "*a", *':"{[|?!é')
BREAKS = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [p for k, v in inside for p in places(v, (*path, k))]


def mutate(chance: random.Random, documents: list[str]) -> str:
    """A few documents with values of other types at random places, sometimes broken as text as well."""
    parts = []
    for _ in range(chance.randint(1, 2)):
        document = json.loads(chance.choice(documents))
        for _ in range(chance.randint(0, 4)):
            path = chance.choice([p for p in places(document) if p] or [()])
            if not path:
                break
            into = document
            for step in path[:-1]:
                into = into[step]
            into[path[-1]] = json.loads(json.dumps(chance.choice(VALUES)))
        parts.append(json.dumps(document))
    text = "\n---\n".join(parts)
    for _ in range(chance.randint(0, 2) if chance.random() < 0.4 else 0):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(NOISE) + text[at:]
    return text


def test_ten_thousand_generated_texts_do_not_crash_lint() -> None:
    chance = random.Random(20261130)
    texts = [p.read_text(encoding="utf-8") for p in sorted(EXAMPLES.rglob("*.yaml"))]
    documents = [json.dumps(x) for text in texts for x in yaml.safe_load_all(text) if x]
    documents += [json.dumps(yaml.safe_load(GPU4)), json.dumps(yaml.safe_load(config_map(GPU4)))]
    told_codes: set[str] = set()
    for _ in range(10_000):
        text = mutate(chance, documents)
        report = lint([("f", text)], chance.choice(OPTIONS))
        told_codes |= {x.code for x in report.found}
        assert all(x.file == "f" and (x.line or 1) <= len(BREAKS.split(text)) + 1 for x in report.found)
    assert len(told_codes) > 35  # the generator reaches most rules, not only the readers


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=150), st.binary(max_size=80).map(lambda b: b.decode("latin-1"))))
def test_any_text_at_all(text: str) -> None:
    lint([("a", text), ("b", config_map(GPU4))])


LEVELS = {"": 0, "sharing": 2, "sharing.timeSlicing": 3, "row": 6}
KNOWN = {
    "": {"version", "flags", "resources", "sharing", "imex"},
    "sharing": {"timeslicing", "mps"},
    "sharing.timeSlicing": {"renameByDefault", "failRequestsGreaterThanOne", "resources"},
    "row": {"name", "replicas", "rename", "devices"},
}


@settings(max_examples=200, deadline=None)
@given(st.text(string.ascii_letters + "_-", min_size=1, max_size=14), st.sampled_from(sorted(LEVELS)), st.booleans())
def test_any_key_outside_the_schema_is_found(key: str, level: str, wrapped: bool) -> None:
    lines = GPU4.splitlines()
    at = LEVELS[level]
    indent = len(lines[at]) - len(lines[at].lstrip(" "))
    lines.insert(at, " " * indent + json.dumps(key) + ": 1")
    known = KNOWN[level]
    if (key in known) if level in ("sharing.timeSlicing", "row") else (key.lower() in known):
        return
    text = "\n".join(lines) + "\n"
    assert {"GF513", "GF514", "GF515"} & set(codes(config_map(text) if wrapped else text))


@st.composite
def written(draw: st.DrawFn) -> tuple[str, dict[str, int], bool]:
    """A configuration with slips of the pen, and what a person reads in it: factor per resource, renamed or not."""
    renamed = draw(st.booleans())
    word = draw(st.sampled_from(["true", "yes", "True", "on"] if renamed else ["false", "no", "False", "off"]))
    rename = draw(st.sampled_from(["renameByDefault", "renamebydefault"]))
    rows, meant = [], {}
    for name in draw(st.lists(st.sampled_from(["nvidia.com/gpu", "gpu", "nvidia.com/gpus"]), min_size=1, max_size=2)):
        factor = draw(st.integers(2, 40))
        shown = draw(st.sampled_from(["{}", "0{}", "{}.0", "'{}'", "{}_0", "0x{}"])).format(factor)
        extra = draw(st.sampled_from(["", "", "", ", devices: [0]", ", rename: nvidia.com/x", ", note: a"]))
        rows.append(f"{{name: {name}, replicas: {shown}{extra}}}")
        meant[name if "/" in name else f"nvidia.com/{name}"] = factor
    top = draw(st.sampled_from(["sharing", "sharing", "Sharing", "sharring"]))
    method = draw(st.sampled_from(["timeSlicing", "timeSlicing", "timeslicing", "time_slicing"]))
    second = draw(st.sampled_from(["", "", "---\nversion: v1\n"]))
    text = (
        f"version: v1\n{top}:\n  {method}:\n    failRequestsGreaterThanOne: true\n    {rename}: {word}\n"
        f"    resources: [{', '.join(rows)}]\n{second}"
    )
    return text, meant, renamed


@settings(max_examples=400, deadline=None)
@given(written(), st.integers(1, 8))
def test_a_text_without_a_finding_advertises_what_it_says(case: tuple[str, dict[str, int], bool], gpus: int) -> None:
    text, meant, renamed = case
    node = NodeLayout(gpus)
    if lint([("f", text)], Options(node=node)).found:
        return
    suffix = ".shared" if renamed else ""
    assert predict(text, node).capacity == {f"{name}{suffix}": gpus * factor for name, factor in meant.items()}


def test_the_property_is_not_empty() -> None:
    """The generator's correct text is quiet, so the property above is about something."""
    text = GPU4.replace("    resources", "    renameByDefault: yes\n    resources")
    assert told(text) == [] and predict(text, NodeLayout(2)).capacity == {"nvidia.com/gpu.shared": 8}
