"""What the stand-in packages contain: files that drive the GPU layer, and maintainer scripts of the usual shape."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .deb import Entry, Package

LIB = "/usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Context:
    """What a payload may depend on: the driver's version, real programs, and the shared NVML stand-in."""

    version: str = ""
    programs: Mapping[str, Path] | None = None
    nvml: bytes = b""
    toolkit_units: Mapping[str, str] | None = None


def tool(name: str) -> Entry:
    """Return a program that is the simulated tool `name`."""
    return Entry(f'#!/bin/sh\nexec /usr/bin/python3 -S -E /twin/lib/guest {name} "$@"\n'.encode(), 0o755)


def script(text: str) -> str:
    """Return a maintainer script that stops at the first error."""
    return f"#!/bin/sh\nset -e\n{text}exit 0\n"


def text(content: str, mode: int = 0o644) -> Entry:
    """Return a text file."""
    return Entry(content.encode(), mode)


def _unit(package: Package, name: str, content: str, *, enable: bool) -> None:
    """Add a service unit with the usual scripts: enabled on first installation, stopped on removal, not on upgrade."""
    package.files[f"/lib/systemd/system/{name}"] = text(content)
    post = (
        f'if [ "$1" = configure ] && [ -z "$2" ]; then\n  systemctl enable {name} >/dev/null 2>&1 || true\nfi\n'
        if enable
        else ""
    )
    reload = "if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n"
    package.scripts["postinst"] = _join(package.scripts.get("postinst"), post + reload)
    stop = f'if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl stop {name} || true; fi\n'
    package.scripts["prerm"] = _join(package.scripts.get("prerm"), stop)
    gone = f'if [ "$1" = remove ] || [ "$1" = purge ]; then systemctl disable {name} >/dev/null 2>&1 || true; fi\n'
    package.scripts["postrm"] = _join(package.scripts.get("postrm"), gone + reload)


def _join(present: str | None, more: str) -> str:
    body = present.removeprefix("#!/bin/sh\nset -e\n").removesuffix("exit 0\n") if present else ""
    return script(body + more)


# -- driver ------------------------------------------------------------------------------------------------------------


def firmware(package: Package, context: Context) -> None:
    """GSP firmware."""
    for chip in ("tu10x", "ga10x"):
        package.files[f"/lib/firmware/nvidia/{context.version}/gsp_{chip}.bin"] = text("firmware\n")


def modprobe(package: Package, context: Context) -> None:
    """The helper that makes device files."""
    package.files["/usr/bin/nvidia-modprobe"] = tool("nvidia-modprobe")


def kernel_common(package: Package, context: Context) -> None:
    """The module options that come with the driver, and the initramfs that must hold them."""
    package.files["/usr/lib/modprobe.d/nvidia-graphics-drivers.conf"] = text(
        "blacklist nouveau\nalias nouveau off\nalias lbm-nouveau off\n"
    )
    call = "if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -u; fi\n"
    package.scripts["postinst"] = script(call)
    package.scripts["postrm"] = script(f'if [ "$1" = remove ]; then\n{call}fi\n')


def _source(package: Package, version: str, flavour: str) -> None:
    folder = f"/usr/src/nvidia-{version}"
    package.files[f"{folder}/dkms.conf"] = text(
        f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\nAUTOINSTALL="yes"\n'
        'BUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/updates/dkms"\n'
    )
    package.files[f"{folder}/{flavour}/Makefile"] = text("all:\n")


def source_open(package: Package, context: Context) -> None:
    """Source of the open kernel modules."""
    _source(package, context.version, "kernel-open")


def source_proprietary(package: Package, context: Context) -> None:
    """Source of the proprietary kernel modules."""
    _source(package, context.version, "kernel")


def dkms(package: Package, context: Context) -> None:
    """Build on installation. A kernel without headers is skipped with a message and no error, as the originals do."""
    version = context.version
    package.files[f"/usr/share/doc/{package.name}/copyright"] = text("stand-in\n")
    package.scripts["postinst"] = script(
        f'if [ "$1" = configure ]; then\n  dkms add -m nvidia -v {version} || true\n'
        '  for kernel in $(ls /lib/modules); do\n    if [ -e "/lib/modules/$kernel/build" ]; then\n'
        f'      dkms build -m nvidia -v {version} -k "$kernel" && dkms install -m nvidia -v {version} -k "$kernel"\n'
        '    else\n      echo "Module build for kernel $kernel was skipped since the"\n'
        '      echo "kernel headers for this kernel do not seem to be installed."\n    fi\n  done\nfi\n'
    )
    package.scripts["prerm"] = script(f"dkms remove -m nvidia -v {version} --all || true\n")


def debian_dkms(package: Package, context: Context) -> None:
    """Debian's own package: source and build in one, proprietary."""
    source_proprietary(package, context)
    dkms(package, context)


def debian_dkms_open(package: Package, context: Context) -> None:
    """Debian's own package: source and build in one, open."""
    source_open(package, context)
    dkms(package, context)


def _prebuilt(package: Package, version: str, flavour: str) -> None:
    """Modules built and signed by the distribution, for the running kernel."""
    facts = f'{{"version": "{version}", "flavour": "{flavour}", "signer": "distribution"}}\n'
    folder = f"/lib/modules/{os.uname().release}/kernel/nvidia-{version.split('.', maxsplit=1)[0]}srv"
    for name in ("nvidia", "nvidia-modeset", "nvidia-drm", "nvidia-uvm", "nvidia-peermem"):
        package.files[f"{folder}/{name}.ko"] = text(facts)
    for name in ("postinst", "postrm"):
        package.scripts[name] = script("depmod\n")


def prebuilt(package: Package, context: Context) -> None:
    """Prebuilt proprietary modules."""
    _prebuilt(package, context.version, "proprietary")


def prebuilt_open(package: Package, context: Context) -> None:
    """Prebuilt open modules."""
    _prebuilt(package, context.version, "open")


def _library(package: Package, name: str, version: str, content: bytes = b"library\n", major: str = "1") -> None:
    package.files[f"{LIB}/{name}.so.{version}"] = Entry(content)
    package.files[f"{LIB}/{name}.so.{major}"] = Entry(target=f"{name}.so.{version}")


def compute(package: Package, context: Context) -> None:
    """User-space libraries. Their version is what nvidia-smi compares with the loaded module."""
    _library(package, "libnvidia-ml", context.version, context.nvml or b"library\n")
    _library(package, "libcuda", context.version)
    _library(package, "libnvidia-ptxjitcompiler", context.version)


def cfg(package: Package, context: Context) -> None:
    """Configuration library of persistenced."""
    _library(package, "libnvidia-cfg", context.version)


def gl(package: Package, context: Context) -> None:
    """OpenGL and EGL libraries."""
    _library(package, "libnvidia-glcore", context.version)


def utils(package: Package, context: Context) -> None:
    """nvidia-smi and friends."""
    package.files["/usr/bin/nvidia-smi"] = tool("nvidia-smi")
    package.files["/usr/bin/nvidia-debugdump"] = text("#!/bin/sh\nexit 0\n", 0o755)
    package.files["/usr/bin/nvidia-bug-report.sh"] = text("#!/bin/sh\nexit 0\n", 0o755)


def persistenced(package: Package, context: Context) -> None:
    """The persistence daemon and its unit."""
    package.files["/usr/bin/nvidia-persistenced"] = tool("nvidia-persistenced")
    _unit(
        package,
        "nvidia-persistenced.service",
        "[Unit]\nDescription=NVIDIA Persistence Daemon\nAfter=twin-boot.service\n\n[Service]\nType=forking\n"
        "PIDFile=/run/nvidia-persistenced/nvidia-persistenced.pid\n"
        "ExecStart=/usr/bin/nvidia-persistenced --verbose\n"
        "ExecStopPost=/bin/rm -rf /run/nvidia-persistenced\n\n[Install]\nWantedBy=multi-user.target\n",
        enable=True,
    )


# -- fabric ------------------------------------------------------------------------------------------------------------


def fabric_manager(package: Package, context: Context) -> None:
    """Fabric manager with its start script, unit and configuration; the unit is installed disabled."""
    package.files["/usr/bin/nv-fabricmanager"] = tool("nv-fabricmanager")
    package.files["/usr/bin/nvidia-fabricmanager-start.sh"] = text(
        "#!/bin/sh\nexec /usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg\n", 0o755
    )
    package.files["/usr/share/nvidia/nvswitch/fabricmanager.cfg"] = text(
        "LOG_LEVEL=4\nLOG_FILE_NAME=/var/log/fabricmanager.log\nDAEMONIZE=1\nFABRIC_MODE=0\n"
    )
    package.files["/usr/share/nvidia/nvswitch/version"] = text(f"{context.version}\n")
    _unit(
        package,
        "nvidia-fabricmanager.service",
        "[Unit]\nDescription=NVIDIA fabric manager service\nAfter=network-online.target twin-boot.service\n\n"
        "[Service]\nUser=root\nType=forking\nPIDFile=/run/nvidia-fabricmanager/nv-fabricmanager.pid\nTimeoutStartSec=60\n"
        "ExecStart=/usr/bin/nvidia-fabricmanager-start.sh\n\n[Install]\nWantedBy=multi-user.target\n",
        enable=False,
    )


def nscq(package: Package, context: Context) -> None:
    """NVSwitch configuration and query library."""
    _library(package, "libnvidia-nscq", context.version, major="2")


def nvsdm(package: Package, context: Context) -> None:
    """NVSwitch device monitoring library."""
    _library(package, "libnvsdm", context.version)


def imex(package: Package, context: Context) -> None:
    """IMEX daemon and its unit."""
    package.files["/usr/bin/nvidia-imex"] = tool("nvidia-imex")
    package.files["/etc/nvidia-imex/nodes_config.cfg"] = text("")
    package.conffiles.append("/etc/nvidia-imex/nodes_config.cfg")
    _unit(
        package,
        "nvidia-imex.service",
        "[Unit]\nDescription=NVIDIA IMEX service\nAfter=network-online.target twin-boot.service\n\n[Service]\n"
        "ExecStart=/usr/bin/nvidia-imex\n\n[Install]\nWantedBy=multi-user.target\n",
        enable=False,
    )


def nvlsm(package: Package, context: Context) -> None:
    """Subnet manager of fourth-generation NVSwitch; fabric manager's start script starts it."""
    package.files["/opt/nvidia/nvlsm/sbin/nvlsm"] = text("#!/bin/sh\nexit 0\n", 0o755)


# -- container toolkit and MIG -----------------------------------------------------------------------------------------


def container_library(package: Package, context: Context) -> None:
    """libnvidia-container."""
    _library(package, "libnvidia-container", package.version.split("-")[0])


def container_cli(package: Package, context: Context) -> None:
    """nvidia-container-cli."""
    version = package.version.split("-")[0]
    package.files["/usr/bin/nvidia-container-cli"] = text(f"#!/bin/sh\necho 'cli-version: {version}'\n", 0o755)


def toolkit_base(package: Package, context: Context) -> None:
    """nvidia-ctk (the real one), the runtimes, and the units that refresh the CDI specification (since 1.18)."""
    version = package.version.split("-")[0]
    program = (context.programs or {}).get("nvidia-ctk")
    if program is not None:
        package.files["/usr/lib/nvidia-container-toolkit/nvidia-ctk"] = Entry(program.read_bytes(), 0o755)
    # The program is 1.20.0 in every package; it answers with the package's version.
    package.files["/usr/bin/nvidia-ctk"] = text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "NVIDIA Container Toolkit CLI version {version}"; exit 0; fi\n'
        'exec /usr/lib/nvidia-container-toolkit/nvidia-ctk "$@"\n',
        0o755,
    )
    for name in ("nvidia-container-runtime", "nvidia-container-runtime.cdi", "nvidia-container-runtime.legacy"):
        package.files[f"/usr/bin/{name}"] = text('#!/bin/sh\nexec runc "$@"\n', 0o755)
    package.files["/usr/bin/nvidia-cdi-hook"] = text("#!/bin/sh\nexit 0\n", 0o755)
    package.files["/etc/nvidia-container-runtime/.keep"] = text("")
    package.scripts["postinst"] = script(
        "if [ ! -e /etc/nvidia-container-runtime/config.toml ] && "
        "[ -x /usr/lib/nvidia-container-toolkit/nvidia-ctk ]; then\n"
        "  /usr/bin/nvidia-ctk --quiet config default --output /etc/nvidia-container-runtime/config.toml || true\nfi\n"
    )
    package.scripts["postrm"] = script('if [ "$1" = purge ]; then rm -rf /etc/nvidia-container-runtime; fi\n')
    if tuple(int(part) for part in version.split(".")[:2]) >= (1, 18):
        for name, content in (context.toolkit_units or {}).items():
            if name.endswith((".service", ".path")):
                _unit(package, name, content, enable=True)
        environment = (context.toolkit_units or {}).get("nvidia-cdi-refresh.env")
        if environment is not None:
            package.files["/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"] = text(environment)
            package.conffiles.append("/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env")
        start = "if [ -d /run/systemd/system ]; then systemctl start nvidia-cdi-refresh.path || true; fi\n"
        package.scripts["postinst"] = _join(package.scripts["postinst"], start)


def toolkit(package: Package, context: Context) -> None:
    """The runtime hook."""
    package.files["/usr/bin/nvidia-container-runtime-hook"] = text("#!/bin/sh\nexit 0\n", 0o755)
    package.files["/usr/bin/nvidia-container-toolkit"] = Entry(target="nvidia-container-runtime-hook")


def mig_manager(package: Package, context: Context) -> None:
    """nvidia-mig-parted and the unit that applies a layout at boot; its config.yaml is written anew at every start."""
    package.files["/usr/bin/nvidia-mig-parted"] = tool("nvidia-mig-parted")
    package.files["/etc/nvidia-mig-manager/hooks.yaml"] = text("version: v1\nhooks: {}\n")
    package.files["/etc/nvidia-mig-manager/service.sh"] = text(
        "#!/bin/sh\nset -e\n/usr/bin/nvidia-mig-parted generate-config > /etc/nvidia-mig-manager/config.yaml\n"
        'if [ -z "$MIG_PARTED_SELECTED_CONFIG" ]; then exit 0; fi\n'
        'file="${MIG_PARTED_CONFIG_FILE:-/etc/nvidia-mig-manager/config.yaml}"\n'
        '/usr/bin/nvidia-mig-parted assert -f "$file" -c "$MIG_PARTED_SELECTED_CONFIG" 2>/dev/null ||\n'
        '  /usr/bin/nvidia-mig-parted apply -f "$file" -c "$MIG_PARTED_SELECTED_CONFIG"\n',
        0o755,
    )
    _unit(
        package,
        "nvidia-mig-manager.service",
        "[Unit]\nDescription=Configure MIG on NVIDIA GPUs\nAfter=twin-boot.service nvidia-persistenced.service "
        "nvidia-fabricmanager.service\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=480\n"
        "ExecStart=/bin/sh /etc/nvidia-mig-manager/service.sh\n\n[Install]\nWantedBy=multi-user.target\n",
        enable=True,
    )


PAYLOADS: dict[str, Callable[[Package, Context], None]] = {
    function.__name__: function
    for function in (
        firmware, modprobe, kernel_common, source_open, source_proprietary, dkms, debian_dkms, debian_dkms_open,
        compute, cfg, gl, utils, persistenced, fabric_manager, nscq, nvsdm, imex, nvlsm, container_library,
        container_cli, toolkit_base, toolkit, mig_manager, prebuilt, prebuilt_open,
    )
}  # fmt: skip
