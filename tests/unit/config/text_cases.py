"""Texts that are wrong as texts: what the reader says, where, and the nearest text that is right."""

from __future__ import annotations

from dataclasses import dataclass

CLUSTER = "  gpufleet:cluster: {kind: aks, name: dev, location: eastus}\n"
POOLS = "  gpufleet:pools: [{name: t4, vmSize: Standard_NC4as_T4_v3, count: 1}]\n"
STACK = "  gpufleet:stack: {kind: plugin}\n"
GOOD = "config:\n" + CLUSTER + POOLS + STACK
EXISTING = "  gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {secret: true}}\n"
NODES = "  gpufleet:pools: [{name: t4, gpu: T4, gpusPerNode: 1, hosts: {n1: {}}}]\n"


def pool(text: str) -> str:
    """A stack file whose one pool has this on its line 5."""
    return (
        "config:\n"
        + CLUSTER
        + "  gpufleet:pools:\n    - name: t4\n"
        + f"      {text}\n      vmSize: Standard_NC4as_T4_v3\n"
        + STACK
    )


def label(text: str) -> str:
    """A stack file with a label of this text on line 5."""
    return pool("labels: {a: " + text + "}")


@dataclass(frozen=True)
class TextCase:
    name: str
    code: str
    path: str
    line: int | None
    value: str | None
    wrong: str
    right: str | None = GOOD
    says: str = ""

    def __str__(self) -> str:
        return f"{self.code} {self.name}"


_AMBIGUOUS = [
    "yes", "No", "ON", "off", "y", "n", "010", "08", "0o17", "0x1F", "0b11", "1_000", "12:30", "2026-11-30",
    "2026-11-30T10:00:00Z", "1e3", "12e4", "1.5E+3", "-.inf", ".NaN",
]  # fmt: skip

TEXT_CASES = [
    TextCase("no end of a list", "GF001", "", 2, None, "config:\n  gpufleet:pools: [\n",
             says="`[` is opened in line 2"),
    TextCase("tab", "GF001", "", 3, None, "config:\n  gpufleet:cluster:\n\tkind: aks\n"),
    TextCase("undefined alias", "GF001", "", 2, None, "config:\n  gpufleet:pools: *a\n",
             says="undefined alias"),
    TextCase("control character", "GF001", "", 3, None, "config:\n# é\n  gpufleet:pools: [\x01]\n", says="control"),
    TextCase("too deep", "GF001", "", 2, None, "config:\n  gpufleet:pools: " + "[" * 5000 + "]" * 5000 + "\n"),
    TextCase("empty file", "GF002", "", 1, None, ""),
    TextCase("a list", "GF002", "", 1, None, "- config\n"),
    TextCase("other keys only", "GF002", "", 2, None, "# a comment\nencryptionsalt: v1:abc\n"),
    TextCase("config is a list", "GF002", "", 1, None, "config: [a]\n"),
    TextCase("config is empty", "GF002", "", 1, None, "config: {}\n"),
    TextCase("two documents", "GF009", "", 5, None, GOOD + "---\n" + GOOD, says="begins at line 5"),
    TextCase("a section beside config", "GF010", "", 5, "gpufleet:teams", GOOD + "gpufleet:teams: []\n"),
    TextCase("a bare section beside config", "GF010", "", 1, "teams", "teams: []\n" + GOOD),
    TextCase("mistyped prefix", "GF003", "", 3, "gpufleeet:pools", GOOD.replace("fleet:pools", "fleeet:pools")),
    *(
        TextCase(f"ambiguous {word}", "GF004", "pools[0].labels.a", 5, word, label(word), label(f'"{word}"')
                 if not any(c in word for c in ":+") and not word.startswith("-.") and not word.startswith(".")
                 else label("b"))
        for word in _AMBIGUOUS
    ),
    TextCase("octal count", "GF004", "pools[0].count", 5, "010", pool("count: 010"), pool("count: 10")),
    TextCase("key on", "GF004", "pools[0].labels.on", 5, "on", pool("labels: {on: b}"), pool('labels: {"on": b}')),
    TextCase("key true", "GF004", "pools[0].labels.True", 5, "True", pool("labels: {True: b}"),
             pool('labels: {"True": b}')),
    TextCase("key null", "GF004", "pools[0].labels.null", 5, "null", pool("labels: {null: b}")),
    TextCase("key twice", "GF005", "pools[0].count", 6, "count", pool("count: 1\n      count: 2"), pool("count: 1")),
    TextCase("section twice", "GF005", "stack", 5, "gpufleet:stack", GOOD + STACK),
    TextCase("section twice, once bare", "GF005", "stack", 5, "stack", GOOD + STACK.replace("gpufleet:", "")),
    TextCase("config twice", "GF005", "", 5, "config", GOOD + "config:\n" + STACK),
    TextCase("tag", "GF006", "pools[0].count", 5, "!!binary", pool("count: !!binary MQ=="), says="binary"),
    TextCase("own tag", "GF006", "pools[0].labels.a", 5, "!env", label("!env HOME")),
    TextCase("own tag of a quoted text", "GF006", "pools[0].labels.a", 5, "!env", label('!env "HOME"')),
    TextCase("own tag of a map", "GF006", "pools[0].labels.a", 5, "!env", label("!env {b: c}")),
    TextCase("own tag of a list", "GF006", "pools[0].labels.a", 5, "!env", label("!env [b]")),
    TextCase("merge key", "GF006", "pools[0]", 4, None,
             "config:\n" + CLUSTER + "  gpufleet:pools:\n"
             "    - {name: t4, <<: {vmSize: Standard_NC4as_T4_v3}}\n" + STACK),
    TextCase("merge key of sections", "GF006", "", 2, None, "config:\n  <<: {a: b}\n" + CLUSTER + POOLS + STACK),
    TextCase("section that is a list", "GF006", "", 2, None, "config:\n  ? [a]\n  : b\n" + CLUSTER + POOLS + STACK),
    TextCase("key that is a list", "GF006", "pools[0]", 4, None, pool("[a]: b"), pool("labels: {a: b}")),
    TextCase("alias of itself", "GF006", "pools[0].labels.a", 5, None, pool("labels: &x {a: *x}")),
    TextCase("kubeconfig in clear", "GF007", "kubeconfig", 5, None,
             "config:\n" + EXISTING + NODES + STACK + '  gpufleet:kubeconfig: "apiVersion: v1"\n',
             "config:\n" + EXISTING + NODES + STACK + "  gpufleet:kubeconfig: {secure: v1:abc}\n"),
    TextCase("kubeconfig in clear as a map", "GF007", "kubeconfig", 5, None,
             "config:\n" + EXISTING + NODES + STACK + "  gpufleet:kubeconfig: {apiVersion: v1}\n"),
    TextCase("kubeconfig in clear at the cluster", "GF007", "cluster.kubeconfig", 2, None,
             "config:\n" + EXISTING.replace("{secret: true}", "'{clusters: [], users: [{token: x}]}'") + NODES + STACK),
    TextCase("secret section", "GF008", "stack", 4, None,
             "config:\n" + CLUSTER + POOLS + "  gpufleet:stack: {secure: v1:abc}\n"),
    TextCase("secret value", "GF008", "pools[0].count", 5, None, pool("count: {secure: v1:abc}")),
    TextCase("secret in a list", "GF008", "pools[0].taints[1]", 5, None,
             pool("taints: ['a:NoSchedule', {secure: v1:abc}]"), pool("taints: ['a:NoSchedule']")),
]
