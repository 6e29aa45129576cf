"""Properties over generated texts: nothing crashes the prediction, and an accepted text adds up."""

import string

from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.device_plugin.yaml11 import YamlError, read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NODE = NodeLayout(2)
OUTCOMES = {"accept", "reject-parse", "reject-flags", "reject-devices"}

WORDS = (
    "version v1 flags sharing timeSlicing mps resources name replicas rename devices renameByDefault migStrategy none "
    "single mixed nvidia.com/gpu gpu 4 010 0x10 yes null ~ [0] {} [] all <<: &a *a !!int !!binary | > --- ... ? , : - "
    "# { } [ ] ' \" % @ plugin gfd mpsRoot /x imex channelIDs"
)
words = st.sampled_from(WORDS.split(" "))
glue = st.sampled_from(["\n", "\n  ", "\n    ", "\n      ", " ", ": ", "- ", "\t", "", "\n- ", ", "])
yamlish = st.lists(st.tuples(glue, words), max_size=40).map(lambda parts: "".join(a + b for a, b in parts))


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=200), yamlish, st.binary(max_size=100).map(lambda b: b.decode("latin-1"))))
def test_any_text_has_an_outcome(text: str) -> None:
    found = predict(text, NODE)
    assert found.outcome in OUTCOMES
    assert (found.capacity is None) == (found.outcome != "accept")
    assert bool(found.reason) == bool(found.faults) or found.outcome == "accept"


def test_deep_nesting_and_alias_bombs_are_refused_not_fatal() -> None:
    assert predict("[" * 5000, NODE).outcome == "reject-parse"
    assert predict("[" * 5000 + "]" * 5000, NODE).outcome == "reject-parse"
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n"
    for here, there in zip("bcdefghi", "abcdefgh", strict=True):
        bomb += f"{here}: &{here} [{','.join(['*' + there] * 9)}]\n"
    refused = predict(bomb, NODE)
    assert (refused.outcome, "excessive aliasing" in refused.reason) == ("reject-parse", True)


def test_lone_surrogates_are_refused() -> None:
    assert predict("version: v1\nx: \ud800\n", NODE).outcome == "reject-parse"


keys = st.text(string.ascii_letters + "_", min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(keys, st.sampled_from(["", "sharing", "flags", "flags.plugin", "sharing.timeSlicing", "row"]))
def test_a_key_outside_the_schema_is_found_or_refused(key: str, level: str) -> None:
    """Whatever the key and the level: it is named, or the text is refused, or it is a key of the level."""
    lines = ["version: v1", "flags:", "  plugin:", "    passDeviceSpecs: true", "sharing:", "  timeSlicing:"]
    lines += ["    resources:", "    - name: nvidia.com/gpu", "      replicas: 4"]
    at = {"": 0, "flags": 2, "flags.plugin": 3, "sharing": 5, "sharing.timeSlicing": 6, "row": 8}[level]
    indent = len(lines[at]) - len(lines[at].lstrip(" -"))
    before = predict("\n".join(lines), NODE)
    assert before.no_effect == ()
    lines.insert(at + 1 if level == "row" else at, " " * indent + f"{key}: ")
    after = predict("\n".join(lines), NODE)
    if after.no_effect or not after.accepted:
        return
    known = {
        "": "version flags resources sharing imex",
        "sharing": "timeSlicing mps",
        "flags": "migStrategy failOnInitError mpsRoot nvidiaDriverRoot nvidiaDevRoot gdrcopyEnabled gdsEnabled "
        "mofedEnabled useNodeFeatureAPI deviceDiscoveryStrategy plugin gfd",
        "flags.plugin": "passDeviceSpecs deviceListStrategy deviceIDStrategy cdiAnnotationPrefix nvidiaCTKPath "
        "containerDriverRoot sharedDevicesAllocationPolicy",
        "sharing.timeSlicing": "renameByDefault failRequestsGreaterThanOne",
        "row": "",
    }[level]
    if level in ("sharing.timeSlicing", "row"):
        assert key in known.split()
    else:
        assert key.lower() in known.lower().split()


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 10_000), st.integers(0, 16), st.booleans())
def test_capacity_is_gpus_times_replicas(replicas: int, gpus: int, renamed: bool) -> None:
    text = (
        f"sharing: {{timeSlicing: {{renameByDefault: {str(renamed).lower()}, "
        f"resources: [{{name: gpu, replicas: {replicas}}}]}}}}"
    )
    found = predict(text, NodeLayout(gpus))
    name = "nvidia.com/gpu.shared" if renamed else "nvidia.com/gpu"
    assert found.capacity == ({name: gpus * replicas} if gpus else {})
    assert [n.kind.value for n in found.no_effect] == ([] if gpus else ["no-such-resource"])


@settings(max_examples=200, deadline=None)
@given(st.integers(-(2**70), 2**70), st.sampled_from(["{}", "{:#x}", "{:#o}", "{:#b}", "0{}", "{}.0", "{:e}"]))
def test_numbers_never_leave_64_bits(value: int, form: str) -> None:
    try:
        item = read(form.format(value)).root
    except YamlError:
        return
    assert item is not None
    assert not isinstance(item.value, int) or -(2**63) <= item.value < 2**64
