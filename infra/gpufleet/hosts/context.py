"""Everything that a decision about one host looks at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .catalog import Catalog
from .platforms import Platform, platform_of
from .target import Gpu, Target, gpus_of, target_of
from .versions import fields, upstream

_DRIVER_NAME = re.compile(
    r"^(?:nvidia-(?!container|docker|mig-manager|cdi)|libnvidia-(?!container)|cuda-drivers|libnvsdm|libxnvctrl|kmod-nvidia"
    r"|xserver-xorg-video-nvidia|firmware-nvidia|akmod-nvidia|linux-modules-nvidia|linux-objects-nvidia"
    r"|linux-signatures-nvidia|libcuda1|libcudadebugger1|libnvcuvid1|libnvoptix1|lib(?:egl|gl|gles|glx)\w*-nvidia)"
)


@dataclass
class Context:
    """One host: what the probe saw, what the variables want, the tables, and what the repositories have."""

    probe: dict[str, Any]
    settings: dict[str, Any]
    tables: Catalog
    resolved: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # of the controller: ansible_core

    @cached_property
    def platform(self) -> Platform:
        """The operating system."""
        return platform_of(self.probe["system"], self.tables)

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The GPUs on the bus."""
        return gpus_of(self.probe["hardware"], self.tables)

    @cached_property
    def target(self) -> Target:
        """The wanted driver."""
        return target_of(self.settings, self.gpus, self.tables, self.probe["system"]["date"])

    @property
    def packages(self) -> dict[str, dict[str, Any]]:
        """Installed packages of interest by name."""
        return dict(self.probe["packages"])

    @cached_property
    def driver_family(self) -> dict[str, str]:
        """Installed packages that belong to a driver: name -> driver version."""
        return {
            name: upstream(row["version"]) for name, row in self.packages.items()
            if _DRIVER_NAME.match(name) and (fields(upstream(row["version"])) or (0,))[0] >= 300
        }  # fmt: skip

    @property
    def modules(self) -> dict[str, Any]:
        """Loaded kernel modules of interest."""
        return dict(self.probe["kernel"]["modules"])

    @property
    def loaded_version(self) -> str | None:
        """Version of the loaded driver, or None."""
        return self.probe["driver"]["version"] if self.probe["driver"] else None

    @property
    def workloads(self) -> list[str]:
        """Names of processes that use a GPU and are not daemons of the driver."""
        daemons = (
            "nvidia-persiste",
            "nv-fabricmanage",
            "nvidia-imex",
            "nv-hostengine",
            "nvidia-smi",
            "nvidia-mig-part",
        )
        names = [h["name"] for h in self.probe["holders"] if not h["name"].startswith(daemons)]
        return sorted(set(names))

    @property
    def in_use(self) -> bool:
        """Whether a change of the driver could disturb somebody: a cluster node or a running workload, not drained."""
        busy = bool(self.workloads) or bool(self.probe["system"]["in_cluster"])
        return busy and not self.settings["gpu_node_drained"]

    def answer(self, want: list[dict[str, Any]]) -> dict[str, Any] | None:
        """What the repositories said about these packages, or None when they were not asked about all of them.

        A host without package lists cannot say whether its own repositories have a package: any version of it will do
        then, and the package manager decides in the transaction. Where an exact version is wanted it counts as missing.
        """
        asked = self.resolved.get("request", [])
        if not all(item in asked for item in want):
            return None
        parts, names = {item["part"] for item in want}, {item["name"] for item in want}
        packages = [p for p in self.resolved["packages"] if p["part"] in parts]
        missing = [name for name in self.resolved["missing"] if name in names]
        for item in want:
            if item["name"] in self.resolved["unknown"] and not item.get("optional") and not item["repository"]:
                if item["version"]:
                    missing.append(item["name"])
                else:
                    packages.append({"name": item["name"], "version": None, "part": item["part"]})
        return {**self.resolved, "packages": packages, "missing": missing, "request": want}

    def unheld(self, name: str, install: list[dict[str, Any]]) -> bool:
        """Whether a package has to be held: it is not, or it is about to change, which takes apt's hold away."""
        return not self.packages.get(name, {}).get("hold") or any(item["name"] == name for item in install)

    def locked(self, install: list[dict[str, Any]]) -> list[str]:
        """Names whose version lock (dnf) would keep the wanted version away."""
        return [item["name"] for item in install if self.packages.get(item["name"], {}).get("lock")]

    def file_text(self, path: str) -> str | None:
        """Text of a file that the probe read, None when there is none."""
        record = self.probe["files"].get(path)
        return record["text"] if record else None

    def want_file(self, path: str, content: str, mode: str = "0644") -> list[dict[str, str]]:
        """The file when it differs from what is there, as a list of none or one."""
        record = self.probe["files"].get(path)
        if record and record["text"] == content and record["mode"] == mode:
            return []
        return [{"path": path, "content": content, "mode": mode}]

    def unwanted(self, *paths: str) -> list[str]:
        """Those of the paths that exist."""
        return [path for path in paths if path in self.probe["files"]]

    def want_unit(
        self, name: str, *, enabled: bool = True, active: bool | None = True, coming: bool = False
    ) -> list[dict[str, Any]]:
        """What is left to do for a unit, as a list of none or one. active None leaves the state alone.

        `coming`: a package that is about to be installed brings the unit, enabled and started by its own script.
        """
        unit = self.probe["units"].get(name)
        if unit is None and coming:
            unit = {"load": "loaded", "active": "active", "enabled": "enabled"}
        change: dict[str, Any] = {}
        if unit and (unit["load"] == "masked" or unit["enabled"].startswith("masked")) and enabled:
            change["masked"] = False
        is_enabled = bool(unit) and unit["enabled"] in ("enabled", "static", "generated", "alias", "indirect")
        if is_enabled != enabled and (unit or enabled):
            change["enabled"] = enabled
        running = bool(unit) and unit["active"] in ("active", "reloading")
        if active is not None and running != active and (unit or active):
            change["state"] = "started" if active else "stopped"
        return [{"name": name, **change}] if change else []


def describe(plan: dict[str, Any]) -> list[str]:
    """What a plan is going to change, in words: for verify and for the output of a run."""
    lines = [f"file {item['path']}" for item in plan.get("files", [])]
    lines += [f"remove file {path}" for path in plan.get("absent", [])]
    lines += [f"key {item['path']}" for item in plan.get("keyrings", [])]
    packages = plan.get("packages", {})
    lines += [f"package {item['name']} {item.get('version') or ''}".rstrip() for item in packages.get("install", [])]
    lines += [f"remove package {name}" for name in packages.get("remove", [])]
    lines += [f"hold {name}" for name in plan.get("hold", [])]
    lines += [f"release {name}" for name in plan.get("release", [])]
    for unit in plan.get("units", []):
        state = [str(unit[k]) for k in ("state",) if k in unit]
        state += ["enabled" if unit["enabled"] else "disabled"] if "enabled" in unit else []
        state += ["unmasked"] if unit.get("masked") is False else []
        lines.append(f"unit {unit['name']} {' '.join(state)}")
    lines += [f"unload module {name}" for name in plan.get("unload", [])]
    lines += [f"load module {name}" for name in plan.get("load", [])]
    if plan.get("initramfs"):
        lines.append("rebuild initramfs")
    lines += plan.get("further", [])
    return lines


def kernel_packages(probe: dict[str, Any]) -> list[str]:
    """Installed kernel images, to see whether a transaction brought one."""
    pattern = re.compile(r"^(?:linux-image-\d|kernel(?:-64k|-uek)?(?:-core)?$)")
    return sorted(f"{name} {row['version']}" for name, row in probe["packages"].items() if pattern.match(name))


def undo(context: Context, plan: dict[str, Any]) -> dict[str, Any]:
    """What puts the files of a plan back, as far as the probe read them: {"write": [...], "remove": [...]}."""
    touched = [item["path"] for item in plan.get("files", [])] + plan.get("absent", []) + plan.get("remove_files", [])
    write, remove = [], []
    for path in touched:
        record = context.probe["files"].get(path)
        if record and record["text"] is not None:
            write.append({"path": path, "content": record["text"], "mode": record["mode"]})
        elif record is None and any(item["path"] == path for item in plan.get("files", [])):
            remove.append(path)
    return {"write": write, "remove": remove}
