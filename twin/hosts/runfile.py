"""The vendor's self-extracting driver installer, as a shell script that does the same to a host's files."""

from __future__ import annotations

from .payloads import LIB

TEMPLATE = r"""#!/bin/sh
# Stand-in for NVIDIA-Linux-x86_64-@VERSION@.run
set -e
version=@VERSION@
flavour=kernel-open
[ ${version%%.*} -lt 560 ] && flavour=kernel
dkms=0
silent=0
uninstall=0
while [ $# -gt 0 ]; do
  case "$1" in
    --silent|-s) silent=1 ;;
    --dkms) dkms=1 ;;
    -m=*) flavour="${1#-m=}" ;;
    -m) shift; flavour="$1" ;;
    --kernel-module-type=open) flavour=kernel-open ;;
    --kernel-module-type=proprietary) flavour=kernel ;;
    --uninstall) uninstall=1 ;;
    --version|-v) echo "nvidia-installer:  version $version"; exit 0 ;;
    --check) exit 0 ;;
  esac
  shift
done
say() { echo "$*"; echo "$*" >> /var/log/nvidia-installer.log; }
if [ $silent = 0 ]; then
  echo "ERROR: this installer asks questions; use --silent" >&2
  exit 1
fi
if [ $uninstall = 1 ]; then exec /usr/bin/nvidia-uninstall --silent; fi
if grep -q '^nvidia ' /twin/proc/modules 2>/dev/null; then
  say "ERROR: An NVIDIA kernel module 'nvidia' appears to be already loaded in your kernel."
  exit 1
fi
if grep -q '^nouveau ' /twin/proc/modules 2>/dev/null; then
  say "ERROR: The Nouveau kernel driver is currently in use by your system."
  exit 1
fi
kernel=$(uname -r)
if [ ! -e "/lib/modules/$kernel/build" ]; then
  say "ERROR: Unable to find the kernel source tree for the currently running kernel."
  exit 1
fi
mkdir -p /usr/src/nvidia-$version/$flavour @LIB@
printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="%s"\nAUTOINSTALL="yes"\n' "$version" \
  > /usr/src/nvidia-$version/dkms.conf
if [ $dkms = 1 ]; then
  command -v dkms > /dev/null || { say "ERROR: dkms is not installed."; exit 1; }
  dkms add -m nvidia -v $version
  dkms build -m nvidia -v $version -k "$kernel" || { say "ERROR: Failed to run dkms build."; exit 1; }
  dkms install -m nvidia -v $version -k "$kernel"
else
  word=proprietary
  [ $flavour = kernel-open ] && word=open
  mkdir -p "/lib/modules/$kernel/kernel/drivers/video"
  for name in nvidia nvidia-modeset nvidia-drm nvidia-uvm nvidia-peermem; do
    printf '{"version": "%s", "flavour": "%s", "signer": ""}\n' "$version" "$word" \
      > "/lib/modules/$kernel/kernel/drivers/video/$name.ko"
  done
  depmod
fi
for name in libnvidia-ml libcuda libnvidia-ptxjitcompiler; do
  echo library > @LIB@/$name.so.$version
  ln -sf $name.so.$version @LIB@/$name.so.1
done
for name in nvidia-smi nvidia-persistenced nvidia-modprobe; do
  printf '#!/bin/sh\nexec /usr/bin/python3 -S -E /twin/lib/guest %s "$@"\n' $name > /usr/bin/$name
  chmod 755 /usr/bin/$name
done
cat > /usr/bin/nvidia-uninstall <<'END'
#!/bin/sh
set -e
version=@VERSION@
command -v dkms > /dev/null && dkms remove -m nvidia -v $version --all || true
rm -f /lib/modules/*/kernel/drivers/video/nvidia*.ko @LIB@/libnvidia-ml.so.* @LIB@/libcuda.so.*
rm -f @LIB@/libnvidia-ptxjitcompiler.so.* /usr/bin/nvidia-smi /usr/bin/nvidia-persistenced /usr/bin/nvidia-modprobe
rm -rf /usr/src/nvidia-$version /usr/bin/nvidia-installer
depmod
echo "Uninstallation of existing driver: NVIDIA Accelerated Graphics Driver for Linux-x86_64 ($version) is complete."
rm -f /usr/bin/nvidia-uninstall
END
chmod 755 /usr/bin/nvidia-uninstall
ln -sf nvidia-uninstall /usr/bin/nvidia-installer
modprobe nvidia || { say "ERROR: Unable to load the kernel module 'nvidia.ko'."; exit 1; }
say "Installation of the NVIDIA Accelerated Graphics Driver for Linux-x86_64 (version: $version) is now complete."
"""


def text(version: str) -> str:
    """Return the installer of one driver version."""
    return TEMPLATE.replace("@VERSION@", version).replace("@LIB@", LIB)
