"""Reading a stack file: values as Pulumi will see them, and the line of every value.

Pulumi reads stack files with a YAML 1.2 reader that keeps some habits of YAML 1.1; other readers of the same text
(editors, Ansible) differ from it. Scalars on which readers differ are refused, so that one text has one meaning.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from gpufleet.findings.finding import Finding, closest_match
from gpufleet.findings.path import PathParts, join_path, split_path
from gpufleet.findings.registry import finding
from gpufleet.stackfile.kubeconfig import is_path
from gpufleet.stackfile.syntax import Mistake, mistake, not_utf8, second_document

NAMESPACE = "gpufleet"
SECTIONS = ("cluster", "pools", "hosts", "stack", "sharing", "teams", "acknowledge", "kubeconfig", "pullSecret")
#: Sections that may be a Pulumi secret (`pulumi config set --secret gpufleet:<key>`).
SECRET_SECTIONS = ("kubeconfig", "pullSecret")

#: What Pulumi keeps in a stack's file (workspace.ProjectStack of pulumi/pulumi).
PULUMI_KEYS = ("config", "secretsprovider", "encryptedkey", "encryptionsalt", "environment")

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Longer numbers are read as the engine reads them, without the last digits.
_LONGEST = 300
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)$")
#: Plain scalars that are no text and no number.
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
#: Plain scalars that YAML 1.1 and 1.2 readers take for different things.
_AMBIGUOUS = re.compile(
    r"""(?ix) y|n|yes|no|on|off                      # booleans in 1.1, words in 1.2
    | [-+]?0[0-9_]+ | 0o[0-7_]+ | 0x[0-9a-f_]+ | 0b[01_]+   # octal, hexadecimal, binary
    | [-+]?[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?          # digits with underscores
    | [-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?          # base 60
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?       # dates
    | [-+]?[0-9.]+e[-+]?[0-9]+                       # numbers with an exponent are words in 1.1
    | [-+]?\.(inf|nan)
    """
)


class SecretText:
    """Stands for a value that must not be seen; the engine knows the text, the plan only that there is one."""

    def __repr__(self) -> str:
        return "[secret]"


@dataclass(frozen=True)
class Source:
    """Raw configuration by section, and where each value stands."""

    data: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[PathParts, int] = field(default_factory=dict)
    file: str | None = None

    def locate(self, found: Finding) -> Finding:
        """Adds file and line to a finding by its path; the nearest enclosing value where the place is absent."""
        if self.file is None or found.file is not None:
            return found
        parts = split_path(found.path)
        while parts and parts not in self.lines:
            parts = parts[:-1]
        return replace(found, file=self.file, line=self.lines.get(parts))


#: Aliases may repeat a value without end; a thousand pools have some ten thousand.
MOST_VALUES = 500_000


_YAML = "tag:yaml.org,2002:"
_SCALARS = {_YAML + word for word in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")}
_COLLECTIONS = {_YAML + word for word in ("map", "seq")}


_STR = _YAML + "str"
_resolver = yaml.SafeLoader("")


def _resolved(text: str) -> str:
    """The tag that a plain text has if none is written."""
    return str(_resolver.resolve(yaml.ScalarNode, text, (True, False)))  # type: ignore[no-untyped-call]


def _odd_key(node: yaml.Node) -> str:
    """What a key is that no stack file can have."""
    return "the merge key <<" if node.value == "<<" else "a key that is not plain text"


class _Reader:
    def __init__(self) -> None:
        self.read = 0
        self.lines: dict[PathParts, int] = {}
        self.found: list[Finding] = []

    def _foreign(self, node: yaml.Node, path: PathParts) -> None:
        """A tag that does not survive Pulumi's configuration."""
        tag = node.tag.replace(_YAML, "!!")
        self.found.append(finding("GF006", join_path(path), value=tag))

    def scalar(self, node: yaml.ScalarNode, path: PathParts) -> Any:
        text: str = node.value
        quoted = node.style in ("'", '"', "|", ">")
        if node.tag not in _SCALARS or node.tag != (_STR if quoted else _resolved(text)):
            self._foreign(node, path)
            return text
        if quoted:
            return text
        if _AMBIGUOUS.fullmatch(text):
            self.found.append(finding("GF004", join_path(path), value=text))
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text) and len(text) < _LONGEST:
            return int(text)
        if _FLOAT.match(text) or _INT.match(text):
            number = float(text)
            return int(number) if number.is_integer() else number  # the engine hands 4.0 over as 4
        return text

    def value(self, node: yaml.Node, path: PathParts, seen: tuple[yaml.Node, ...] = ()) -> Any:
        self.read += 1
        if self.read > MOST_VALUES:
            if self.read == MOST_VALUES + 1:
                self.found.append(finding("GF006", join_path(path), value=f"more than {MOST_VALUES} values"))
            return None
        self.lines.setdefault(path, node.start_mark.line + 1)
        if node in seen:
            self.found.append(finding("GF006", join_path(path), value="an alias that contains itself"))
            return None
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if node.tag not in _COLLECTIONS:
            self._foreign(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i), (*seen, node)) for i, item in enumerate(node.value)]
        out: dict[str, Any] = {}
        for key_node, item in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key == "<<":
                self.found.append(finding("GF006", join_path(path), value=_odd_key(key_node)))
                continue
            here = (*path, key)
            if key in out:
                self.lines[here] = key_node.start_mark.line + 1
                self.found.append(finding("GF005", join_path(here), value=key))
                continue
            self.lines[here] = key_node.start_mark.line + 1
            if not key_node.style and (_AMBIGUOUS.fullmatch(key) or key in _WORDS):
                self.found.append(finding("GF004", join_path(here), value=key))
            out[key] = self.value(item, here, (*seen, node))
        return out


def _split_key(text: str) -> tuple[str, str]:
    """Namespace and name as Pulumi takes them: `pools` and `gpufleet:config:pools` are `gpufleet:pools`."""
    prefix, colon, key = text.partition(":")
    return (prefix, key.removeprefix("config:")) if colon else (NAMESPACE, text)


def known_sections(source: Source) -> tuple[Source, list[Finding]]:
    """Reports unknown sections. A misspelt one is then read as what it was meant to be, so that nothing else is
    reported only because of it."""
    found: list[Finding] = []
    data, lines = dict(source.data), dict(source.lines)
    for section in [s for s in data if s not in SECTIONS]:
        unknown = finding("GF101", join_path((section,)), value=section, allowed=SECTIONS, key=f"gpufleet:{section}")
        found.append(source.locate(unknown))
        value, meant = data.pop(section), unknown.closest
        if meant is not None and meant not in data:
            data[meant] = value
            lines |= {(meant, *path[1:]): line for path, line in source.lines.items() if path[:1] == (section,)}
    return replace(source, data=data, lines=lines), found


def _secrets(data: dict[str, Any], found: list[Finding]) -> dict[str, Any]:
    """Replaces `{secure: ...}` by a marker where a secret may stand and refuses it elsewhere."""

    def walk(value: Any, path: PathParts) -> Any:
        if isinstance(value, dict):
            if set(value) == {"secure"}:
                if len(path) == 1 and (path[0] in SECRET_SECTIONS or path[0] not in SECTIONS):
                    return SecretText()
                found.append(finding("GF008", join_path(path), allowed=SECRET_SECTIONS))
                return None
            return {k: walk(v, (*path, k)) for k, v in value.items()}
        if isinstance(value, list):
            return [walk(v, (*path, i)) for i, v in enumerate(value)]
        return value

    out = {k: walk(v, (k,)) for k, v in data.items()}
    cluster = out.get("cluster")
    if isinstance(cluster, dict):
        ref = cluster.get("kubeconfig")
        text = ref.get("path") if isinstance(ref, dict) else ref
        if isinstance(text, str) and ("\n" in text if isinstance(ref, dict) else not is_path(text)):
            found.append(finding("GF007", "cluster.kubeconfig"))
            out["cluster"] = {**cluster, "kubeconfig": {"path": "kubeconfig"}}
    for key in SECRET_SECTIONS:
        if isinstance(out.get(key), str):
            found.append(finding("GF007", key))
            out[key] = SecretText()
    return out


def parse(text: str, file: str | None = None) -> tuple[Source, list[Finding]]:
    """Reads the text of a stack file.

    Returns:
        The values of the `gpufleet:` keys without the prefix, with their lines, and what is wrong with the text.
        Keys of other namespaces belong to other providers and are left alone.
    """
    reader = _Reader()
    try:
        documents = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        return _unreadable(mistake(error, text), file)
    except ValueError as error:  # characters that no YAML text may hold
        return _unreadable(Mistake(None, f"{error}.", "Remove the character."), file)
    found: list[Finding] = []
    root = documents[0] if documents else None
    if len(documents) > 1:
        line = second_document(text)
        return Source(file=file), [replace(finding("GF009", "", line=line), file=file, line=line)]
    if not isinstance(root, yaml.MappingNode):
        return Source(file=file), [replace(finding("GF002", ""), file=file, line=1)]
    configs = [(k, v) for k, v in root.value if k.value == "config"]
    if not configs or not isinstance(configs[0][1], yaml.MappingNode):
        return Source(file=file), [replace(finding("GF002", ""), file=file, line=root.start_mark.line + 1)]
    for again, _ in configs[1:]:
        found.append(replace(finding("GF005", "", value="config"), file=file, line=again.start_mark.line + 1))
    found += [replace(d, file=file) for d in _beside(root)]
    data: dict[str, Any] = {}
    misspelt: set[str] = set()
    reader.lines[()] = configs[0][0].start_mark.line + 1
    for key_node, item in configs[0][1].value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
            found.append(replace(finding("GF006", "", value=_odd_key(key_node)), file=file, line=line))
            continue
        glued = re.match(r"(.*\w):([{\[])", key_node.value)
        if glued is not None:
            why = f"Line {line} has no blank after the colon, so that the brace belongs to the key."
            return _unreadable(Mistake(line, why, f"A blank must follow the colon: `{glued[1]}: {glued[2]}`."), file)
        prefix, key = _split_key(key_node.value)
        if prefix != NAMESPACE:
            if not closest_match(prefix, [NAMESPACE]):
                continue
            unknown = finding("GF003", "", value=key_node.value, allowed=[f"{NAMESPACE}:{s}" for s in SECTIONS])
            found.append(replace(unknown, file=file, line=line))
            if key in data:
                continue  # the right one is read
            misspelt.add(key)
        elif key in misspelt:
            misspelt.remove(key)
            del data[key]
            reader.lines = {path: number for path, number in reader.lines.items() if path[:1] != (key,)}
        if key in data:
            reader.lines[(key,)] = line
            reader.found.append(finding("GF005", key, value=key_node.value))
            continue
        reader.lines[(key,)] = line
        data[key] = reader.value(item, (key,))
    found += reader.found
    data = _secrets(data, found)
    source = Source(data=data, lines=reader.lines, file=file)
    return source, [source.locate(d) for d in found]


def _beside(root: yaml.MappingNode) -> Iterator[Finding]:
    """Keys beside `config:` that nobody reads."""
    for node, _ in root.value:
        name = node.value if isinstance(node, yaml.ScalarNode) else ""
        if name not in PULUMI_KEYS:
            prefix, colon, key = name.partition(":")
            ours = (colon and prefix == NAMESPACE) or name in SECTIONS
            code = "GF010" if ours else "GF011"
            yield replace(finding(code, "", value=name, key=key or name), line=node.start_mark.line + 1)


def _unreadable(wrong: Mistake, file: str | None) -> tuple[Source, list[Finding]]:
    found = finding("GF001", "", because=wrong.why, hint=wrong.remedy)
    return Source(file=file), [replace(found, file=file, line=wrong.line)]


def read_file(path: Path, shown_as: str | None = None) -> tuple[Source, list[Finding]]:
    """Reads a stack file from disk.

    Raises:
        OSError: the file cannot be opened.
    """
    raw = path.read_bytes()
    try:
        text = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        return _unreadable(not_utf8(raw, error), shown_as or str(path))
    return parse(text, shown_as or str(path))


def from_engine(
    config: Mapping[str, str], secret_keys: frozenset[str], file: Path | None, shown_as: str | None = None
) -> Source:
    """The configuration as the Pulumi engine hands it over (`namespace:key` -> text, objects as JSON).

    The engine's values count (they include `--config` overrides); the file gives lines. Secrets stay markers: the
    program asks the engine for them where they are used.
    """
    text = Source()
    if file is not None and file.is_file():
        text = read_file(file, shown_as)[0]
    data: dict[str, Any] = {}
    for full, value in config.items():
        prefix, key = _split_key(full)
        if closest_match(prefix, [NAMESPACE]) is None:
            continue  # a prefix that is nearly ours is reported from the file
        if full in secret_keys:
            # The engine hands secrets over in clear; the file's text has them taken out.
            data[key] = SecretText() if key in SECRET_SECTIONS else text.data.get(key, SecretText())
            continue
        try:
            data[key] = json.loads(value)
        except ValueError:
            data[key] = value
    return replace(text, data=data)
