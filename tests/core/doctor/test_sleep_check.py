"""What the system does with an idle machine, from what pmset prints and what logind is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.doctor.machine_check import SleepSettings, from_pmset, idle_action, judge_sleep, sleep_settings
from mpstui.core.doctor.report import Status

# In the form of pmset(1), "-g": a setting a line, with who prevents sleep in brackets.
PMSET = """System-wide power settings:
 SleepDisabled\t\t0
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatefile        /var/vm/sleepimage
 disksleep            10
 sleep                {sleep}
 displaysleep         2 (display sleep prevented by a program)
 lowpowermode         {low}
"""


@pytest.mark.parametrize(
    ("sleep", "low", "minutes"), [("1 (sleep prevented by powerd, caffeinate)", "0", 1), ("0", "1", 0), ("30", "0", 30)]
)
def test_pmset_is_read(sleep: str, low: str, minutes: int) -> None:
    found = from_pmset(PMSET.format(sleep=sleep, low=low))
    assert found == SleepSettings(idle_minutes=minutes, low_power=low == "1")


@pytest.mark.parametrize(("mode", "low"), [("0", False), ("1", True), ("2", False)])
def test_a_mac_with_a_high_power_mode_tells_its_mode(mode: str, low: bool) -> None:
    assert from_pmset(f"Currently in use:\n sleep                1\n powermode            {mode}\n").low_power is low


def test_sleep_that_is_switched_off_beats_the_minutes() -> None:
    text = PMSET.format(sleep="10", low="0").replace("SleepDisabled\t\t0", "SleepDisabled\t\t1")
    assert from_pmset(text).idle_minutes == 0


def test_an_answer_that_is_not_understood_is_unknown() -> None:
    assert from_pmset("pmset: unknown option") == SleepSettings()
    assert list(judge_sleep(SleepSettings())) == []


def test_a_mac_that_sleeps_is_told_of_what_keeps_it_awake() -> None:
    (result,) = judge_sleep(SleepSettings(idle_minutes=10, low_power=False))
    assert result.status is Status.NOTE
    assert "10 min" in result.text
    assert "caffeinate" in result.advice
    awake, throttled = judge_sleep(SleepSettings(idle_minutes=0, low_power=True))
    assert (awake.status, throttled.status) == (Status.OK, Status.WARNING)


def logind(root: Path, place: str, text: str) -> None:
    (root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_drop_in_beats_the_file_and_a_comment_sets_nothing(tmp_path: Path) -> None:
    logind(tmp_path, "etc/systemd/logind.conf", "[Login]\n#IdleAction=suspend\n")
    assert idle_action(tmp_path) == "ignore"
    logind(tmp_path, "usr/lib/systemd/logind.conf.d/10-idle.conf", "[Login]\nIdleAction=suspend\n")
    assert idle_action(tmp_path) == "suspend"
    (result,) = judge_sleep(SleepSettings(idle_action="suspend"))
    assert result.status is Status.WARNING
    assert "IdleAction=ignore" in result.advice
    logind(tmp_path, "etc/systemd/logind.conf.d/90-mine.conf", "[Login]\nIdleAction = ignore\n")
    assert sleep_settings("Linux", tmp_path) == SleepSettings(idle_action="ignore")


def test_without_systemd_nothing_is_said(tmp_path: Path) -> None:
    assert idle_action(tmp_path) is None
    assert list(judge_sleep(sleep_settings("Linux", tmp_path))) == []
