"""Which part a pod plays, and which file its plugin reads. Pure: pods and ConfigMaps as the API gives them.

Nothing here looks at pod labels or names: the container's image and command say what it is, its mounts say what it
reads, as on a real node.
Sources: kubelet's volume rules (Kubernetes docs, configmap volumes); reference A2 for the config-manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

Pod = dict[str, Any]
PLUGIN_IMAGE = "k8s-device-plugin"
# role -> program; one image holds the plugin, GPU feature discovery, the config-manager and the MPS daemon
PROGRAMS = {"gfd": "gpu-feature-discovery", "config-manager": "config-manager", "mps": "mps-control-daemon"}
# role -> image and program; no program where the image has one only. HAMi's image holds its scheduler and monitor too.
OTHERS = {"driver": ("driver", ""), "operator": ("gpu-operator", "gpu-operator"),
          "nfd-worker": ("node-feature-discovery", "nfd-worker"), "mig-manager": ("k8s-mig-manager", ""),
          "hami": ("hami", "nvidia-device-plugin")}
SELECT_LABEL = "nvidia.com/device-plugin.config"


class NoFileError(Exception):
    """The pod cannot have the file that its plugin wants. `starts`: the container starts and then fails."""

    def __init__(self, message: str, starts: bool) -> None:
        super().__init__(message)
        self.starts = starts


@dataclass(frozen=True)
class Text:
    """The file's content and where it came from; a change of `source` alone makes a plugin read again."""

    source: str
    content: str


def _base(image: str) -> str:
    """Last part of an image's repository, without tag and digest."""
    return PurePosixPath(image.partition("@")[0]).name.partition(":")[0]


def words(container: dict[str, Any]) -> list[str]:
    return [str(word) for word in (container.get("command") or []) + (container.get("args") or [])]


def role(container: dict[str, Any]) -> str:
    """plugin | gfd | config-manager | mps, or one of OTHERS, or "" (none of ours)."""
    image = _base(container.get("image", ""))
    programs = [PurePosixPath(word).name for word in words(container)]
    if PLUGIN_IMAGE in image:
        return next((name for name, program in PROGRAMS.items() if program in programs), "plugin")
    return next((name for name, (repository, program) in OTHERS.items()
                 if image == repository and (not program or program in programs)), "")


def find(pod: Pod, wanted: str) -> dict[str, Any] | None:
    """The pod's first container of a role (init containers left out)."""
    return next((one for one in pod["spec"]["containers"] if role(one) == wanted), None)


def roles(pod: Pod) -> set[str]:
    return {role(one) for one in pod["spec"]["containers"]} - {""}


def is_running(pod: Pod) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


def is_ready(pod: Pod) -> bool:
    return is_running(pod) and any(
        one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", []))


def waits_for_validation(pod: Pod) -> bool:
    """Operands of the operator wait in an init container until driver and toolkit are ready (reference A5.3)."""
    return any("validation" in one["name"] for one in pod["spec"].get("initContainers") or [])


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: str(one["value"]) for one in container.get("env") or [] if "value" in one}


def config_file(pod: Pod, container: dict[str, Any], configmaps: Mapping[tuple[str, str], dict[str, Any]],
                node_labels: Mapping[str, str]) -> Text:
    """The file that this container reads, as its volumes hold it now. Raises NoFileError."""
    given, env = words(container), environment(container)
    path = next((word.split("=", 1)[1] for word in given if word.startswith("--config-file=")), None)
    if path is None and "--config-file" in given[:-1]:
        path = given[given.index("--config-file") + 1]
    if path is None and role(container) == "gfd":
        path = env.get("GFD_CONFIG_FILE")
    path = env.get("CONFIG_FILE") if path is None else path
    if not path:
        return Text("no file", "")
    return file(pod, container, path, configmaps, node_labels)


def file(pod: Pod, container: dict[str, Any], path: str, configmaps: Mapping[tuple[str, str], dict[str, Any]],
         node_labels: Mapping[str, str]) -> Text:
    """The file at `path` in this container, as its volumes hold it now. Raises NoFileError."""
    mount = _mount(container, path)
    volume = _volume(pod, mount) if mount else None
    if volume and ("configMap" in volume or "projected" in volume):
        files, source = _files(pod, volume, configmaps)
        name = mount["subPath"] if mount.get("subPath") else _relative(mount["mountPath"], path)
        if name not in files:
            raise NoFileError(f"unable to load config: open {path}: no such file or directory", starts=True)
        return Text(f"{source}/{name}", files[name])
    manager = find(pod, "config-manager")
    if manager and volume and "emptyDir" in volume:
        return _managed(pod, manager, configmaps, node_labels)
    raise NoFileError(f"unable to load config: open {path}: no such file or directory", starts=True)


def host_folder(pod: Pod, container: dict[str, Any], path: str) -> str | None:
    """The folder of the host that is mounted at exactly `path`, None where there is none."""
    mount = next((one for one in container.get("volumeMounts") or [] if one["mountPath"].rstrip("/") == path), None)
    volume = _volume(pod, mount) if mount else None
    found = (volume or {}).get("hostPath")
    return str(found["path"]).rstrip("/") if found else None


def _mount(container: dict[str, Any], path: str) -> Any:
    """The innermost mount that holds `path`."""
    fitting = [one for one in container.get("volumeMounts") or []
               if path == one["mountPath"] or path.startswith(one["mountPath"].rstrip("/") + "/")]
    return max(fitting, key=lambda one: len(one["mountPath"]), default=None)


def _volume(pod: Pod, mount: dict[str, Any]) -> dict[str, Any] | None:
    return next((one for one in pod["spec"].get("volumes") or [] if one["name"] == mount["name"]), None)


def _relative(folder: str, path: str) -> str:
    return path.removeprefix(folder).lstrip("/")


def _files(pod: Pod, volume: dict[str, Any],
           configmaps: Mapping[tuple[str, str], dict[str, Any]]) -> tuple[dict[str, str], str]:
    """File name -> content of a ConfigMap volume, and the ConfigMap's name."""
    sources = [volume["configMap"]] if "configMap" in volume else [
        one["configMap"] for one in volume["projected"].get("sources") or [] if "configMap" in one]
    files: dict[str, str] = {}
    for source in sources:
        found = configmaps.get((pod["metadata"]["namespace"], source["name"]))
        if found is None:
            if source.get("optional"):
                continue
            raise NoFileError(f'MountVolume.SetUp failed for volume "{volume["name"]}": configmap "{source["name"]}" '
                              "not found", starts=False)
        data = found.get("data") or {}
        if source.get("items"):
            missing = [item["key"] for item in source["items"] if item["key"] not in data]
            if missing and not source.get("optional"):
                raise NoFileError(f'MountVolume.SetUp failed for volume "{volume["name"]}": references non-existent '
                                  f"config key: {missing[0]}", starts=False)
            files |= {item["path"]: data[item["key"]] for item in source["items"] if item["key"] in data}
        else:
            files |= data
    return files, "+".join(source["name"] for source in sources)


def _managed(pod: Pod, manager: dict[str, Any], configmaps: Mapping[tuple[str, str], dict[str, Any]],
             node_labels: Mapping[str, str]) -> Text:
    """The config-manager's choice: label value, else default, else the fallbacks in order."""
    env = environment(manager)
    folder = env.get("CONFIG_FILE_SRCDIR", "/available-configs")
    mount = _mount(manager, folder)
    volume = _volume(pod, mount) if mount else None
    files, source = _files(pod, volume, configmaps) if volume else ({}, "")
    label, default = node_labels.get(env.get("NODE_LABEL", SELECT_LABEL), ""), env.get("DEFAULT_CONFIG", "")
    chosen = label or default
    if not chosen:
        for fallback in filter(None, env.get("FALLBACK_STRATEGIES", "").split(",")):
            if fallback == "named" and "default" in files:
                chosen = "default"
            elif fallback == "single" and len(files) == 1:
                chosen = next(iter(files))
            elif fallback == "empty":
                return Text("empty", "")
            if chosen:
                break
        else:
            raise NoFileError("config-manager: no config selected and no fallback fits", starts=False)
    if chosen not in files:
        raise NoFileError(f"config-manager: specified config {chosen} does not exist", starts=False)
    return Text(f"{source}/{chosen}", files[chosen])


def started(pods: Iterable[Pod]) -> list[Pod]:
    """Running pods, the one that started last at the end."""
    return sorted(filter(is_running, pods), key=lambda pod: (
        pod.get("status", {}).get("startTime", ""), pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
