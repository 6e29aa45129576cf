"""What the distribution's stand-in packages contain: kernel, headers, compilers, dkms, initramfs tools, mokutil."""

from __future__ import annotations

from .deb import Entry, Package
from .payloads import Context, script, text, tool

IN_TREE = ("nouveau", "nova_core", "nova_drm", "ib_core", "ib_umad", "mlx5_core", "mlx5_ib", "ipmi_msghandler",
           "ipmi_devintf", "i2c_core")  # fmt: skip
BUILT_IN = ("overlay", "br_netfilter", "loop")


def _kernel(package: Package) -> str:
    return package.name.split("-", 2)[2]


def kernel_image(package: Package, context: Context) -> None:
    """A kernel image: the modules that come with it, and its initramfs."""
    kernel = _kernel(package)
    package.files[f"/boot/vmlinuz-{kernel}"] = text("kernel\n")
    package.files[f"/lib/modules/{kernel}/modules.builtin"] = text(
        "".join(f"kernel/drivers/{name}.ko\n" for name in BUILT_IN)
    )
    for name in IN_TREE:
        package.files[f"/lib/modules/{kernel}/kernel/drivers/{name}.ko"] = text('{"signer": "distribution"}\n')
    package.scripts["postinst"] = script(
        f"if command -v depmod >/dev/null 2>&1; then depmod {kernel}; fi\n"
        f"if command -v update-initramfs >/dev/null 2>&1; then update-initramfs -c -k {kernel}; fi\n"
    )
    package.scripts["postrm"] = script(
        f'if [ "$1" = remove ]; then rm -f /boot/initrd.img-{kernel} /lib/modules/{kernel}/modules.dep*; fi\n'
    )


def kernel_headers(package: Package, context: Context) -> None:
    """Kernel headers; a dkms that is there already builds for them, as the hook of the original does."""
    kernel = _kernel(package)
    package.files[f"/usr/src/linux-headers-{kernel}/Makefile"] = text("all:\n")
    package.files[f"/lib/modules/{kernel}/build"] = Entry(target=f"/usr/src/linux-headers-{kernel}")
    package.scripts["postinst"] = script(f"if command -v dkms >/dev/null 2>&1; then dkms autoinstall -k {kernel}; fi\n")


def versioned_compiler(package: Package, context: Context) -> None:
    """gcc-<major>, which answers with its version and nothing else."""
    major = package.name.rpartition("-")[2]
    answer = f"gcc-{major} (Debian {package.version}) {package.version.split('-')[0]}"
    package.files[f"/usr/bin/gcc-{major}"] = text(
        f"#!/bin/sh\ncase \"$1\" in\n  -dumpversion) echo {major} ;;\n  --version) echo '{answer}' ;;\nesac\n", 0o755
    )


def compiler(package: Package, context: Context) -> None:
    """The default compiler: the one that it depends on."""
    for name in ("gcc", "cc"):
        package.files[f"/usr/bin/{name}"] = Entry(target=package.relations["Depends"][0])


def make(package: Package, context: Context) -> None:
    """make, which succeeds."""
    package.files["/usr/bin/make"] = text("#!/bin/sh\nexit 0\n", 0o755)


def dkms_tool(package: Package, context: Context) -> None:
    """dkms."""
    package.files["/usr/sbin/dkms"] = tool("dkms")


def initramfs(package: Package, context: Context) -> None:
    """update-initramfs and lsinitramfs."""
    package.files["/usr/sbin/update-initramfs"] = tool("update-initramfs")
    package.files["/usr/bin/lsinitramfs"] = tool("lsinitramfs")
    package.scripts["postinst"] = script("update-initramfs -u -k all\n")


def mokutil(package: Package, context: Context) -> None:
    """mokutil."""
    package.files["/usr/bin/mokutil"] = tool("mokutil")


PAYLOADS = {
    function.__name__: function
    for function in (
        kernel_image, kernel_headers, versioned_compiler, compiler, make, dkms_tool, initramfs, mokutil,
    )
}  # fmt: skip
