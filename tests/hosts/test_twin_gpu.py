"""The GPU layer on real hosts: packages, modules, reboots, container toolkit. Roles are proven elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from twin.hosts.engine import Host, HostTwin

APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
SETUP = """set -e
python3 - <<'END'
import urllib.request
for url, file in (("{cuda_base}/debian12/x86_64/cuda-keyring_1.1-1_all.deb", "/tmp/keyring.deb"),
                  ("{toolkit_key}", "/usr/share/keyrings/toolkit.asc")):
    open(file, "wb").write(urllib.request.urlopen(url).read())
END
dpkg -i /tmp/keyring.deb
rm /etc/apt/sources.list.d/cuda-debian12-x86_64.list
cat > /etc/apt/sources.list.d/vendor.list <<'END'
deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {cuda_base}/debian12/x86_64/ /
deb [signed-by=/usr/share/keyrings/toolkit.asc] {toolkit_base}/ /
END
apt-get -q update
"""


def ok(twin: HostTwin, host: Host | str, command: str) -> str:
    """Run a command that has to work and return what it printed."""
    result = twin.run(host, command)
    assert result.rc == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def prepare(twin: HostTwin, host: Host | str, *, headers: bool = True) -> None:
    ok(twin, host, SETUP.format(**twin.places()))
    if headers:
        ok(twin, host, f"{APT} install linux-headers-$(uname -r)")


SET = ("nvidia-driver{b}-open", "nvidia-dkms{b}-open", "nvidia-kernel-source{b}-open", "nvidia-kernel-common{b}",
       "nvidia-firmware{b}", "libnvidia-compute{b}", "libnvidia-cfg1{b}", "libnvidia-gl{b}", "nvidia-utils{b}",
       "nvidia-compute-utils{b}", "nvidia-modprobe")  # fmt: skip


def driver_set(version: str) -> str:
    """Return the exact set of an open driver as apt arguments."""
    branch = int(version.split(".", maxsplit=1)[0])
    suffix = f"-{branch}" if branch < 590 else ""
    return " ".join(f"{name.format(b=suffix)}={version}-1" for name in SET)


@pytest.fixture(scope="module")
def twin(start_module_hosts: Any) -> HostTwin:
    """A T4 with nouveau, an HGX H100, an HGX A100 for MIG, a host behind secure boot."""
    found: HostTwin = start_module_hosts(4, ["t4", "hgx-h100", "mig-a100", "secure-boot"])
    for host in found.hosts:
        prepare(found, host)
    return found


def test_a_pinned_meta_brings_a_newer_driver(twin: HostTwin) -> None:
    planned = ok(twin, "gpu02", f"{APT} -s install cuda-drivers-535=535.216.03-1")
    assert "Inst nvidia-driver-535 (535.309.01-1" in planned


def test_without_pinning_the_host_rolls_to_the_newest_branch(twin: HostTwin) -> None:
    assert "Inst nvidia-driver-open (620." in ok(twin, "gpu02", f"{APT} -s install nvidia-open")


def test_nouveau_gives_way_after_initramfs_and_reboot(twin: HostTwin) -> None:
    assert "nouveau" in ok(twin, "gpu01", "lsmod")
    ok(twin, "gpu01", f"{APT} install {driver_set('580.95.05')}")
    assert twin.run("gpu01", "modprobe nvidia").rc == 1
    assert "already bound to nouveau" in ok(twin, "gpu01", "dmesg")
    twin.reboot("gpu01")
    modules = ok(twin, "gpu01", "cat /twin/proc/modules")
    assert "nouveau" not in modules and "nvidia_drm" in modules
    assert "Tesla T4" in ok(twin, "gpu01", "nvidia-smi -L")
    assert ok(twin, "gpu01", "systemctl is-active nvidia-persistenced") == "active\n"
    assert ok(twin, "gpu01", "systemctl is-system-running") == "running\n"


def test_an_upgrade_leaves_the_old_module_loaded(twin: HostTwin) -> None:
    ok(twin, "gpu01", f"{APT} install {driver_set('580.126.09')}")
    answer = twin.run("gpu01", "nvidia-smi")
    assert (answer.rc, "Driver/library version mismatch" in answer.stdout) == (18, True)
    assert "580.95.05" in ok(twin, "gpu01", "cat /twin/proc/driver/nvidia/version")
    assert ok(twin, "gpu01", "modinfo -F version nvidia") == "580.126.09\n"
    assert twin.run("gpu01", "rmmod nvidia").rc == 1
    ok(twin, "gpu01", "systemctl stop nvidia-persistenced && modprobe -r nvidia-drm && modprobe nvidia")
    assert ok(twin, "gpu01", "nvidia-smi --query-gpu=driver_version --format=csv,noheader") == "580.126.09\n"


def test_a_change_of_naming_scheme_replaces_the_old_set_and_all_of_it_can_go(twin: HostTwin) -> None:
    ok(twin, "gpu01", f"{APT} install {driver_set('595.91.07')}")
    names = ok(twin, "gpu01", "dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n' 'libnvidia-compute*'")
    installed = [line.split()[1:] for line in names.splitlines() if line.startswith("ii")]
    assert installed == [["libnvidia-compute", "595.91.07-1"]]
    assert ok(twin, "gpu01", "modinfo -F version nvidia") == "595.91.07\n"
    names = " ".join(part.split("=")[0] for part in driver_set("595.91.07").split())
    ok(twin, "gpu01", f"{APT} purge --autoremove {names}")
    assert twin.run("gpu01", "modinfo nvidia").rc == 1
    assert twin.run("gpu01", "command -v nvidia-smi").rc != 0
    assert twin.run("gpu01", "ls /var/lib/dkms/nvidia/*").rc != 0


def test_fabric_manager_matches_to_the_last_field(twin: HostTwin) -> None:
    ok(twin, "gpu02", f"{APT} install {driver_set('580.95.05')} && modprobe nvidia")
    ok(twin, "gpu02", f"{APT} install nvidia-fabricmanager=580.126.09-1")
    assert twin.run("gpu02", "systemctl start nvidia-fabricmanager").rc == 1
    log = ok(twin, "gpu02", "journalctl -u nvidia-fabricmanager -o cat")
    assert "version 580.126.09 don't match with driver version 580.95.05" in log
    query = "nvidia-smi --query-gpu=fabric.state --format=csv,noheader | sort -u"
    assert ok(twin, "gpu02", query) == "In Progress\n"
    ok(twin, "gpu02", f"{APT} --allow-downgrades install nvidia-fabricmanager=580.95.05-1")
    ok(twin, "gpu02", "systemctl start nvidia-fabricmanager")
    ok(twin, "gpu02", f"timeout 20 sh -c 'until [ \"$({query})\" = Completed ]; do :; done'")
    assert ok(twin, "gpu02", "nvidia-smi -q | grep -c 'Status.*: Success'") == "8\n"


def test_a_failure_is_switched_on_and_off_while_the_host_runs(twin: HostTwin) -> None:
    twin.set_scenario("gpu02", {"failures": {"gpu_lost": [3]}})
    assert len(ok(twin, "gpu02", "nvidia-smi -L").splitlines()) == 7
    twin.kernel_log("gpu02", "NVRM: Xid (PCI:0000:4a:00): 79, GPU has fallen off the bus.")
    assert "Xid" in ok(twin, "gpu02", "journalctl -k -g Xid -o cat")
    twin.set_scenario("gpu02", {"failures": {"gpu_lost": None}})
    assert len(ok(twin, "gpu02", "nvidia-smi -L").splitlines()) == 8


def test_the_real_toolkit_writes_cdi_for_gpus_and_mig_devices(twin: HostTwin) -> None:
    ok(twin, "gpu03", f"{APT} install {driver_set('580.95.05')} && modprobe nvidia")
    pins = "nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1"
    ok(twin, "gpu03", f"{APT} install {' '.join(f'{name}=1.20.0-1' for name in pins.split())}")
    ok(twin, "gpu03", "systemctl start nvidia-cdi-refresh")
    assert "nvidia.com/gpu=7\n" in ok(twin, "gpu03", "nvidia-ctk cdi list")
    ok(twin, "gpu03", "nvidia-smi -mig 1 && nvidia-smi mig -cgi 19,14,9 -C && systemctl restart nvidia-cdi-refresh")
    assert "nvidia.com/gpu=7:2\n" in ok(twin, "gpu03", "nvidia-ctk cdi list")
    ok(twin, "gpu03", "nvidia-ctk runtime configure --runtime containerd && systemctl restart containerd")
    assert "runtimes.nvidia" in ok(twin, "gpu03", "containerd config dump")


def test_mig_manager_applies_its_own_file_and_boot_loses_instances(twin: HostTwin) -> None:
    ok(twin, "gpu03", f"{APT} install nvidia-mig-manager")
    text = "version: v1\\nmig-configs:\\n  ours:\\n  - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}\\n"
    ok(twin, "gpu03", f"printf '{text}' > /etc/nvidia-mig-manager/ours.yaml")
    apply = "nvidia-mig-parted {} -f /etc/nvidia-mig-manager/ours.yaml -c ours"
    assert twin.run("gpu03", apply.format("assert")).rc == 1
    ok(twin, "gpu03", apply.format("apply"))
    ok(twin, "gpu03", apply.format("assert"))
    assert ok(twin, "gpu03", "nvidia-smi -L | grep -c 'MIG 1g.10gb'") == "56\n"
    twin.reboot("gpu03")
    assert "MIG" not in ok(twin, "gpu03", "nvidia-smi -L")
    assert ok(twin, "gpu03", "nvidia-smi --query-gpu=mig.mode.current --format=csv,noheader | sort -u") == "Enabled\n"


def test_secure_boot_until_the_key_is_enrolled(twin: HostTwin) -> None:
    ok(twin, "gpu04", f"{APT} install mokutil {driver_set('580.95.05')}")
    assert "SecureBoot enabled" in ok(twin, "gpu04", "mokutil --sb-state")
    refused = twin.run("gpu04", "modprobe nvidia")
    assert refused.rc == 1 and "Key was rejected by service" in refused.stderr
    ok(twin, "gpu04", "mokutil --import /var/lib/dkms/mok.pub")
    twin.reboot("gpu04")
    ok(twin, "gpu04", "nvidia-smi -L")


def test_hosts_as_somebody_left_them(start_hosts: Any) -> None:
    twin = start_hosts(4, ["runfile", "k3s", "newer-headers", "containerd1"])
    # A driver from the run file works, and no package owns it.
    assert "Tesla T4" in ok(twin, "gpu01", "nvidia-smi -L")
    assert twin.run("gpu01", "dpkg -S /usr/bin/nvidia-smi").rc == 1
    ok(twin, "gpu01", "test -x /usr/bin/nvidia-uninstall")
    # k3s writes its containerd file at start and takes up the NVIDIA runtime that it finds then.
    config = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    assert "nvidia" not in ok(twin, "gpu02", f"cat {config}")
    prepare(twin, "gpu02", headers=False)
    ok(twin, "gpu02", f"{APT} install nvidia-container-toolkit")
    assert "nvidia" not in ok(twin, "gpu02", f"cat {config}")
    ok(twin, "gpu02", "systemctl restart k3s-agent && test -S /run/k3s/containerd/containerd.sock")
    assert 'BinaryName = "/usr/bin/nvidia-container-runtime"' in ok(twin, "gpu02", f"cat {config}")
    # Headers of a newer kernel let dkms build for that one alone.
    prepare(twin, "gpu03", headers=False)
    ok(twin, "gpu03", f"{APT} install {driver_set('580.95.05')}")
    assert "6.99.1-twin" in ok(twin, "gpu03", "dkms status")
    assert twin.run("gpu03", "modprobe nvidia").rc == 1
    # Real containerd 1.6 runs with the local configuration.
    assert "1.6" in ok(twin, "gpu04", "containerd --version")
    assert "SystemdCgroup = true" in ok(twin, "gpu04", "containerd config dump")


def test_modules_signed_by_the_distribution_load_under_secure_boot(start_hosts: Any) -> None:
    twin = start_hosts(1, [{"extends": "secure-boot", "os": "ubuntu-24.04"}])
    assert "Ubuntu 24.04" in ok(twin, "gpu01", ". /etc/os-release && echo $PRETTY_NAME")
    flavour = ok(twin, "gpu01", "uname -r").strip().rpartition("-")[2]
    names = f"nvidia-headless-580-server-open nvidia-utils-580-server linux-modules-nvidia-580-server-open-{flavour}"
    ok(twin, "gpu01", f"apt-get -q update && {APT} install {names}")
    assert twin.run("gpu01", "command -v dkms").rc != 0  # nothing had to be built
    ok(twin, "gpu01", "modprobe nvidia && nvidia-smi -L")
