"""Reading pods: containers, their environment, arguments, mounts."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.path import PathParts
from gpufleet.lint.document import Document, entries, get, pairs, text_at, texts
from gpufleet.lint.recognise import POD_PATHS
from gpufleet.lint.tables import table


@dataclass(frozen=True)
class Container:
    """One container of a pod with its place."""

    item: Item
    path: PathParts
    init: bool = False

    @property
    def name(self) -> str:
        """Its name; empty if not set."""
        return text_at(self.item, "name")

    @property
    def image(self) -> str:
        """Its image; empty if not set."""
        return text_at(self.item, "image")

    @property
    def words(self) -> list[str]:
        """Command and arguments."""
        return [*texts(get(self.item, "command")), *texts(get(self.item, "args"))]

    def env(self) -> dict[str, str]:
        """Variables with a literal value. Variables with `valueFrom` are left out."""
        found = {}
        for entry in entries(self.item, "env"):
            value = get(entry, "value")
            if text_at(entry, "name") and value is not None and not isinstance(value.value, (dict, list)):
                found[text_at(entry, "name")] = value.value if isinstance(value.value, str) else value.text
        return found

    def env_item(self, name: str) -> tuple[Item, PathParts] | None:
        """The entry of a variable, with a literal value or with `valueFrom`."""
        for i, entry in enumerate(entries(self.item, "env")):
            if text_at(entry, "name") == name:
                return entry, (*self.path, "env", i)
        return None

    @property
    def shell_words(self) -> list[str]:
        """Command and arguments; a text with blanks is a command line for a shell and counts as its words."""
        return [part for word in self.words for part in _words(word)]

    def flags(self) -> dict[str, str]:
        """Options: `--a=b`, `--a b`, bare `--a` as an empty text; Go programs take `-a` for the same."""
        found: dict[str, str] = {}
        words = self.shell_words
        for i, word in enumerate(words):
            if not word.startswith("-") or len(word.lstrip("-")) < 2:
                continue
            name, equals, value = word.partition("=")
            if not equals and i + 1 < len(words) and not words[i + 1].startswith("-"):
                value = words[i + 1]
            found[f"--{name.lstrip('-')}"] = value
        return found

    def assigned(self, name: str) -> str:
        """The value that a command line for a shell gives a variable (`NAME=value program`), or an empty text."""
        start = f"{name}="
        return next((w.removeprefix(start) for w in self.shell_words if w.startswith(start)), "")


def _words(text: str) -> list[str]:
    if not any(letter.isspace() for letter in text):
        return [text]
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote that is not closed
        return text.split()


def pod_path(document: Document) -> tuple[str, ...] | None:
    """The path to the pod spec of an object, or None."""
    return POD_PATHS.get(document.api_kind)


def pod_spec(document: Document) -> Item | None:
    """The pod spec of an object."""
    path = pod_path(document)
    return get(document.root, *path) if path is not None else None


def containers(document: Document) -> Iterator[Container]:
    """All containers, init containers first."""
    path = pod_path(document)
    if path is None:
        return
    for key in ("initContainers", "containers"):
        for i, item in enumerate(entries(document.root, *path, key)):
            yield Container(item, (*path, key, i), key == "initContainers")


def is_image(image: str, kind: str) -> bool:
    """Whether an image is one of a kind of tables.yaml: plugin, discovery, exporter, hami."""
    return any(part in image for part in table("images")[kind])


def program(container: Container) -> str:
    """What a container of the plugin's image runs: plugin, discovery, mps, config-manager; empty for other images."""
    words = " ".join(container.words)
    if is_image(container.image, "discovery") or "gpu-feature-discovery" in words:
        return "discovery"
    if not is_image(container.image, "plugin"):
        return ""
    if "mps-control-daemon" in words:
        return "mps"
    return "config-manager" if "config-manager" in words else "plugin"


def config_file(container: Container) -> tuple[str, Item, PathParts] | None:
    """The configuration file that a plugin or feature discovery is told to read, with the place that says so."""
    word = container.flags().get("--config-file") or container.assigned("CONFIG_FILE")
    if word:
        return word, container.item, (*container.path, "args")
    for name in ("CONFIG_FILE", "GFD_CONFIG_FILE"):
        entry = container.env_item(name)
        value = get(entry[0], "value") if entry is not None else None
        if entry is not None and value is not None and isinstance(value.value, str) and value.value:
            return value.value, value, (*entry[1], "value")
    return None


_VIRTUAL = "KUBERNETES_VIRTUAL_GPUS"


def told_virtual_gpus(env: Iterable[Item], words: Iterable[str]) -> bool:
    """Whether dcgm-exporter, with this environment and these arguments, knows of shared GPUs."""
    for entry in env:
        value = get(entry, "value")
        if text_at(entry, "name") == _VIRTUAL:
            return value is None or str(value.value).lower() in ("true", "1", "t")
    return any(w in ("--kubernetes-virtual-gpus", "--kubernetes-virtual-gpus=true") for w in words)


@dataclass(frozen=True)
class Mount:
    """A ConfigMap mounted into a container; `items` maps file names to keys, empty: every key is a file."""

    config_map: str
    mount_path: str
    sub_path: str
    items: dict[str, str]
    path: PathParts
    item: Item
    volume: Item


def config_mounts(document: Document, container: Container) -> list[Mount]:
    """The ConfigMaps that a container mounts as files."""
    spec = pod_spec(document)
    volumes = {text_at(v, "name"): v for v in entries(spec, "volumes")}
    found = []
    for i, mount in enumerate(entries(container.item, "volumeMounts")):
        volume = volumes.get(text_at(mount, "name"))
        name = text_at(volume, "configMap", "name")
        if volume is None or not name:
            continue
        items = {text_at(e, "path"): text_at(e, "key") for e in entries(volume, "configMap", "items")}
        path = (*container.path, "volumeMounts", i)
        mounted, part = text_at(mount, "mountPath").rstrip("/"), text_at(mount, "subPath")
        found.append(Mount(name, mounted, part, items, path, mount, volume))
    return found


def other_mounts(container: Container) -> list[str]:
    """All mount paths."""
    return [text_at(m, "mountPath").rstrip("/") for m in entries(container.item, "volumeMounts")]


def template_annotations(document: Document) -> dict[str, Item]:
    """Annotations of the pods of an object."""
    path = pod_path(document) or ()
    return pairs(document.root, *path[:-1], "metadata", "annotations")
