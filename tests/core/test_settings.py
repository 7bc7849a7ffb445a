"""Settings are checked like profiles, and the webhook's address stays a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpstui.core.model.errors import UsageError
from mpstui.core.model.home import Home
from mpstui.core.settings import Settings, load_settings, parse_settings
from mpstui.supervisor.notify.alert import read_settings

PATH = Path("settings.toml")


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_settings(Home(tmp_path, tmp_path)) == Settings()


@pytest.mark.parametrize("name", ["", "settings.toml"])
def test_settings_that_others_can_write_are_not_obeyed(tmp_path: Path, name: str) -> None:
    (tmp_path / "settings.toml").write_text('[alerts]\nhook = ["/bin/true"]\n')
    (tmp_path / name).chmod(0o777)
    with pytest.raises(UsageError, match=r"not obeyed, because .* can be written by everybody"):
        load_settings(Home(tmp_path, tmp_path))
    with pytest.raises(OSError, match=r"not obeyed, because .* can be written by everybody"):
        read_settings(tmp_path / "settings.toml")


def test_every_key_is_read(tmp_path: Path) -> None:
    text = (
        '[alerts]\non = ["crash"]\nwhen = "no_screen"\nbell = false\nnotify = "osc9"\n'
        'hook = ["say", "{text}"]\nwebhook = "https://example.org/x?token=s3cret"\n'
    )
    (tmp_path / "settings.toml").write_text(text)
    alerts = load_settings(Home(tmp_path, tmp_path)).alerts
    assert (alerts.on, alerts.when, alerts.bell, alerts.notify) == (("crash",), "no_screen", False, "osc9")
    assert alerts.hook == ("say", "{text}")
    assert alerts.webhook.endswith("s3cret")
    assert "s3cret" not in repr(alerts)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[alerts]\nwen = "always"\n', ["settings.toml:2", "`wen`", "`when`"]),
        ('[alert]\nwhen = "always"\n', ["settings.toml:1", "`alerts`"]),
        ('when = "always"\n', ["settings.toml:1", "in [alerts]"]),
        ('[alerts]\nbell = true\nwhen = "allways"\n', ["settings.toml:3", "did you mean 'always'"]),
        ('[alerts]\nhook = "say hello"\n', ["settings.toml:2", '["say", "hello"]']),
        ('[alerts]\non = ["crush"]\n', ["settings.toml:2", "crash"]),
        ("[alerts\n", ["settings.toml:1", "not TOML"]),
        ("[energy]\nprize = 0.3\n", ["settings.toml:2", "`price`"]),
        ("price = 0.3\n", ["settings.toml:1", "in [energy]"]),
        ('[energy]\nprice = "0.3"\n', ["settings.toml:2", "a number"]),
        ("[energy]\nprice = -1\n", ["settings.toml:2", "from 0 on"]),
        ("[energy]\nprice = nan\n", ["settings.toml:2", "a number"]),
        ("[energy]\nprice = true\n", ["settings.toml:2", "a number"]),
        ('[hosts]\nshaw = ["a"]\n', ["settings.toml:2", "`show`"]),
        ('[hosts]\nssh = "ssh -F x"\n', ["settings.toml:2", '["ssh", "-F", "x"]']),
        ('[hosts.gpu1]\n\npithon = "x"\n', ["settings.toml:3", "`python`", "[hosts.gpu1]"]),
        ('[hosts.gpu1]\nfolder = "it\'s"\n', ["settings.toml:2", "without quotes"]),
        ('[energy]\ncurrency = "doubloons"\n', ["settings.toml:2", "4 characters"]),
        ('[screen]\ntheme = "ligt"\n', ["settings.toml:2", "did you mean 'light'"]),
    ],
)
def test_a_mistake_is_named_with_line_and_key(text: str, named: list[str]) -> None:
    with pytest.raises(UsageError) as wrong:
        parse_settings(text, PATH)
    assert all(part in wrong.value.sentence for part in named), wrong.value.sentence


def test_a_theme_is_read() -> None:
    assert parse_settings('[screen]\ntheme = "light"\n', PATH).screen.theme == "light"
    assert parse_settings("", PATH).screen.theme == "auto"


def test_a_price_is_read() -> None:
    energy = parse_settings('[energy]\nprice = 0.32\ncurrency = "EUR"\n', PATH).energy
    assert (energy.price, energy.currency) == (0.32, "EUR")
    assert parse_settings("[energy]\nprice = 0\n", PATH).energy.price == 0
    assert parse_settings("", PATH).energy.price is None


def test_an_address_that_is_refused_is_not_repeated() -> None:
    with pytest.raises(UsageError) as wrong:
        parse_settings('[alerts]\nwebhook = "http://example.org/x?token=s3cret"\n', PATH)
    assert "https://" in wrong.value.sentence
    assert "s3cret" not in wrong.value.sentence


def test_hosts_are_tables_beside_two_keys() -> None:
    text = '[hosts]\nssh = ["ssh", "-F", "x"]\nshow = ["gpu1"]\n'
    text += '[hosts.gpu1]\naddress = "me@10.0.0.1"\npython = "~/v/bin/python"\n'
    hosts = parse_settings(text, PATH).hosts
    assert (hosts.ssh, hosts.show, list(hosts.named)) == (("ssh", "-F", "x"), ("gpu1",), ["gpu1"])
    assert (hosts.named["gpu1"].address, hosts.named["gpu1"].python) == ("me@10.0.0.1", "~/v/bin/python")
