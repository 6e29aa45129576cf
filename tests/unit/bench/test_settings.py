"""Settings are changed with permission only, and put back. nvidia-smi is a fake with state."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpufleet.bench import settings, smi
from gpufleet.bench.settings import SettingsError


def test_without_permission_nothing_is_called(fake_smi: Path) -> None:
    with pytest.raises(SettingsError, match="--allow-settings"), settings.time_slice("short", "0", False):
        pass
    with pytest.raises(SettingsError, match="--allow-settings"), settings.mig_instances("1g.18gb", 2, "0", False):
        pass
    assert (fake_smi / "calls").read_text() == ""


def test_a_time_slice_is_set_and_put_back(fake_smi: Path) -> None:
    (fake_smi / "slice").write_text("Medium")
    with settings.time_slice("long", "0", True):
        assert smi.time_slice("0") == "Long"
    assert smi.time_slice("0") == "Medium"


def test_a_time_slice_is_put_back_after_an_error(fake_smi: Path) -> None:
    with pytest.raises(ZeroDivisionError), settings.time_slice("short", "0", True):
        raise ZeroDivisionError
    assert smi.time_slice("0") == "Default"


def test_an_unreadable_time_slice_is_not_changed(fake_smi: Path) -> None:
    (fake_smi / "slice").write_text("unknown")
    with pytest.raises(SettingsError, match="could not be put back"), settings.time_slice("short", "0", True):
        pass
    assert "--set-timeslice" not in (fake_smi / "calls").read_text()


def test_mig_instances_are_made_and_removed(fake_smi: Path) -> None:
    with settings.mig_instances("1g.18gb", 3, "0", True) as uuids:
        assert uuids == ["MIG-0", "MIG-1", "MIG-2"]
        assert (fake_smi / "mig").read_text() == "Enabled"
    assert (fake_smi / "instances").read_text() == ""
    assert (fake_smi / "mig").read_text() == "Disabled"


def test_mig_mode_that_was_on_stays_on(fake_smi: Path) -> None:
    (fake_smi / "mig").write_text("Enabled")
    with settings.mig_instances("1g.18gb", 2, "0", True):
        pass
    assert (fake_smi / "mig").read_text() == "Enabled"


def test_a_layout_that_does_not_fit_leaves_nothing_behind(fake_smi: Path) -> None:
    with pytest.raises(SettingsError, match="Insufficient Resources"), settings.mig_instances("1g.18gb", 8, "0", True):
        pass
    assert (fake_smi / "instances").read_text() == ""
    assert (fake_smi / "mig").read_text() == "Disabled"


def test_a_gpu_in_use_is_left_alone(fake_smi: Path) -> None:
    (fake_smi / "apps").write_text("4711, python")
    with pytest.raises(SettingsError, match="4711, python"), settings.mig_instances("1g.18gb", 1, "0", True):
        pass
    assert "-mig" not in (fake_smi / "calls").read_text()


def test_instances_of_others_are_left_alone(fake_smi: Path) -> None:
    (fake_smi / "mig").write_text("Enabled")
    (fake_smi / "instances").write_text("1g.18gb 0")
    with (
        pytest.raises(SettingsError, match="has MIG instances already"),
        settings.mig_instances("1g.18gb", 1, "0", True),
    ):
        pass
    assert (fake_smi / "instances").read_text() == "1g.18gb 0"


def test_a_pending_mode_is_undone_and_never_reset(fake_smi: Path) -> None:
    (fake_smi / "mig_pending").touch()
    with pytest.raises(SettingsError, match="wants a reset"), settings.mig_instances("1g.10gb", 1, "0", True):
        pass
    calls = (fake_smi / "calls").read_text().splitlines()
    assert calls[-1] == "-i 0 -mig 0"
    assert not any("-r" in call.split() or "--gpu-reset" in call for call in calls)


def test_instances_that_stay_are_reported(fake_smi: Path) -> None:
    (fake_smi / "stuck").touch()
    with pytest.raises(SettingsError, match="could not be removed"), settings.mig_instances("1g.18gb", 2, "0", True):
        pass
