"""Collects from all documents: configurations, the ConfigMaps that hold them, and who reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from gpufleet.device_plugin.options import options
from gpufleet.device_plugin.yaml11 import Item
from gpufleet.findings.path import PathParts
from gpufleet.lint.config import ConfigText
from gpufleet.lint.document import Document, Kind, get, pairs, text_at, truth
from gpufleet.lint.pods import Container, Mount, config_file, config_mounts, containers, program
from gpufleet.lint.recognise import text_is_config
from gpufleet.lint.tables import table


@dataclass(frozen=True)
class KeySet:
    """A set of named configurations: a ConfigMap, or the part of chart values that becomes one."""

    document: Document
    name: str
    namespace: str
    keys: Mapping[str, Item]
    path: PathParts
    configs: tuple[str, ...]
    """Keys whose text is meant for the device plugin, in the order of the text."""


@dataclass(frozen=True)
class Reader:
    """An object that reads a ConfigMap with configurations, and the environment that it gives the plugin."""

    document: Document
    kind: Kind
    config_map: str
    namespace: str
    path: PathParts
    env: Mapping[str, str]
    flags: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    file: str | None = None
    """The only key that is read; None if a default or a node label chooses the key."""


@dataclass(frozen=True)
class Gathered:
    """Everything that checks across documents need."""

    documents: tuple[Document, ...]
    configs: tuple[ConfigText, ...]
    key_sets: tuple[KeySet, ...]
    readers: tuple[Reader, ...]
    by_name: Mapping[str, list[KeySet]] = field(default_factory=dict)
    with_configs: tuple[KeySet, ...] = ()
    """The key sets in which some key is meant for the device plugin."""
    programs: frozenset[str] = frozenset()
    """What the containers of the plugin's image run, over all documents."""

    def of(self, *kinds: Kind) -> list[Document]:
        """The documents of some kinds."""
        return [d for d in self.documents if d.kind in kinds]

    @cached_property
    def config_maps(self) -> tuple[str, ...]:
        """Names of the ConfigMaps in which some key is meant for the device plugin."""
        return tuple(k.name for k in self.with_configs if k.document.kind is Kind.CONFIG_MAP and k.name)

    def named(self, name: str) -> KeySet | None:
        """The first set of keys of a name."""
        return next(iter(self.by_name.get(name, ())), None)


def gather(documents: list[Document], env: Mapping[str, str], pool_env: Mapping[str, str]) -> Gathered:
    """Finds configurations and their readers. `env` is what the user says of the plugin's environment; it wins.
    `pool_env` is the plugin's environment by the stack; it counts where no reader is among the documents."""
    readers = [r for d in documents for r in _readers(d)]
    key_sets = [_all_read(k, readers) for d in documents for k in _key_sets(d)]
    by_name: dict[str, list[KeySet]] = {}
    for keys in key_sets:
        by_name.setdefault(keys.name, []).append(keys)
    lost = [r for r in readers if r.config_map and r.config_map not in by_name]
    readers_of: dict[str, Reader] = {}
    for reader in reversed(readers):
        readers_of[reader.config_map] = reader
    own = {id(r.document): r for r in readers if r.container is None}
    configs: list[ConfigText] = []
    for document in documents:
        if document.kind is Kind.CONFIG:
            configs.append(ConfigText(document, document.text, env={**pool_env, **env}))
    for keys in key_sets:
        # Also the only one who looks for a ConfigMap that is not there under its name.
        found = own.get(id(keys.document)) or (readers_of.get(keys.name) if keys.name else None)
        found = found or (lost[0] if len(lost) == 1 else None)
        for key in keys.configs:
            item = keys.keys[key]
            config = ConfigText(keys.document, item.value, (*keys.path, key), item, {**pool_env, **env})
            if found is not None:
                config = replace(config, env={**found.env, **env}, flags=found.flags)
            configs.append(config)
    return Gathered(
        documents=tuple(documents),
        configs=tuple(configs),
        key_sets=tuple(key_sets),
        readers=tuple(readers),
        by_name=by_name,
        with_configs=tuple(k for k in key_sets if k.configs),
        programs=frozenset(program(c) for d in documents for c in containers(d)),
    )


def _all_read(keys: KeySet, readers: list[Reader]) -> KeySet:
    """What somebody reads as a configuration is one, whatever stands in it: every key that config-manager may choose,
    the one key that CONFIG_FILE names."""
    texts = {k for k, v in keys.keys.items() if isinstance(v.value, str)}
    read = texts if keys.document.kind is not Kind.CONFIG_MAP else set()
    for reader in readers:
        if keys.name and reader.config_map == keys.name and keys.document.kind is Kind.CONFIG_MAP:
            read = read | (texts if reader.file is None else texts & {reader.file})
    return replace(keys, configs=tuple(k for k in keys.keys if k in read or k in keys.configs))


def _key_set(document: Document, name: str, namespace: str, *path: str) -> KeySet | None:
    data = pairs(document.root, *path)
    if not data and get(document.root, *path) is None:
        return None
    configs = tuple(k for k, v in data.items() if isinstance(v.value, str) and text_is_config(v.value))
    return KeySet(document, name, namespace, data, path, configs)


def _key_sets(document: Document) -> Iterator[KeySet]:
    found: KeySet | None = None
    if document.kind is Kind.CONFIG_MAP:
        found = _key_set(document, document.name, document.namespace, "data")
    elif document.kind is Kind.OPERATOR_VALUES:
        name = text_at(document.root, "devicePlugin", "config", "name")
        found = _key_set(document, name, "", "devicePlugin", "config", "data")
    elif document.kind is Kind.CHART_VALUES:
        found = _key_set(document, "", "", "config", "map")
    if found is not None:
        yield found


def operator_env(root: Item | None) -> dict[str, str]:
    """The environment that the operator gives the plugin; `root` holds the values, or the spec of a ClusterPolicy."""
    known = table("operator_values")
    env = {**known["env"], "MIG_STRATEGY": text_at(root, "mig", "strategy") or known["mig_strategy"]}
    env["DEVICE_LIST_STRATEGY"] = known["device_list_strategy"][truth(root, "cdi", "enabled") is not False]
    root_of_mps = text_at(root, "devicePlugin", "mps", "root")
    if root_of_mps:
        env["MPS_ROOT"] = root_of_mps
    for entry in _env_entries(root):
        env.update(entry)
    return env


def _env_entries(root: Item | None) -> Iterator[dict[str, str]]:
    listed = get(root, "devicePlugin", "env")
    for entry in listed.value if listed is not None and isinstance(listed.value, list) else ():
        value = get(entry, "value")
        if text_at(entry, "name") and value is not None and isinstance(value.value, str):
            yield {text_at(entry, "name"): value.value}


def chart_env(root: Item | None) -> dict[str, str]:
    """The environment that the plugin's chart makes from its values. A value that is not set adds no variable."""
    known = table("chart_values")
    env = {"MPS_ROOT": text_at(root, "mps", "root") or known["mps_root"]}
    for value, variable in known["env"].items():
        found = get(root, value)
        if found is not None and isinstance(found.value, bool):
            env[variable] = str(found.value).lower()
        elif found is not None and isinstance(found.value, str):
            env[variable] = found.value
    return env


def plugin_environment(container: Container) -> tuple[dict[str, str], dict[str, str]]:
    """The environment variables and flags of a container that the plugin itself reads."""
    names = {name for option in options() for name in option.env}
    flags = {f"--{name}" for option in options() for name in option.flags}
    env = {k: v for k, v in container.env().items() if k in names}
    return env, {k: v for k, v in container.flags().items() if k in flags}


def _readers(document: Document) -> Iterator[Reader]:
    root = document.root
    if document.kind is Kind.OPERATOR_VALUES:
        name = text_at(root, "devicePlugin", "config", "name")
        yield Reader(document, document.kind, name, "", ("devicePlugin", "config"), operator_env(root))
    elif document.kind is Kind.CLUSTER_POLICY:
        spec = get(root, "spec")
        name = text_at(spec, "devicePlugin", "config", "name")
        yield Reader(document, document.kind, name, "", ("spec", "devicePlugin", "config"), operator_env(spec))
    elif document.kind is Kind.CHART_VALUES:
        yield Reader(document, document.kind, text_at(root, "config", "name"), "", ("config",), chart_env(root))
    elif document.kind in (Kind.DAEMON_SET, Kind.WORKLOAD):
        for container in containers(document):
            if program(container) != "plugin":
                continue
            env, flags = plugin_environment(container)
            reader = Reader(document, document.kind, "", document.namespace, container.path, env, flags, container)
            mounts = config_mounts(document, container)
            managed = _of_manager(document)
            for mount in mounts:
                if mount.config_map != managed:
                    yield replace(reader, config_map=mount.config_map, file=_file(container, mount))
            if managed or not mounts:
                yield replace(reader, config_map=managed)


def _file(container: Container, mount: Mount) -> str:
    """The key below a mount that the plugin is told to read; empty if none."""
    told = config_file(container)
    if told is None:
        return ""
    if mount.sub_path:
        return mount.sub_path if told[0] == mount.mount_path else ""
    inside = told[0].removeprefix(mount.mount_path + "/") if told[0].startswith(mount.mount_path + "/") else ""
    return mount.items.get(inside, "" if mount.items else inside)


def _of_manager(document: Document) -> str:
    """The ConfigMap from which a config-manager beside the plugin picks a file."""
    for container in containers(document):
        if program(container) == "config-manager":
            for mount in config_mounts(document, container):
                return mount.config_map
    return ""


def plugin_enabled(root: Item | None) -> bool:
    """Whether operator values, or the spec of a ClusterPolicy, enable the plugin (default: yes)."""
    return truth(root, "devicePlugin", "enabled") is not False
