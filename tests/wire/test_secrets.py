"""Secrets by name, by shape and by place; and words that only look like them."""

from __future__ import annotations

import pytest

from mpstui.wire.secrets import HIDDEN, hides, masked, masked_text, masked_words

DOTS = HIDDEN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ada:pw@host/x", f"https://{DOTS}@host/x"),
        ("https://abcdef0123456789@host/x", f"https://{DOTS}@host/x"),
        ("https://host/x?a=1&api_key=s3cret&b=2", f"https://host/x?a=1&api_key={DOTS}&b=2"),
        ("https://host/x?sig=s3cret", f"https://host/x?sig={DOTS}"),
        ("https://conda.host/t/ab-12345678/channel", f"https://conda.host/t/{DOTS}/channel"),
        ("AccountName=x;AccountKey=abc+/==;Suffix=y", f"AccountName=x;AccountKey={DOTS};Suffix=y"),
        ("Server=x;Password=s3cret;Port=1", f"Server=x;Password={DOTS};Port=1"),
        ("Authorization: Basic YWRhOnB3", f"Authorization: Basic {DOTS}"),
        ("sent Bearer abcdef0123456789", f"sent Bearer {DOTS}"),
        ("sk-proj-abcdefghijklmnop1234", DOTS),
        ("token hf_abcdefghijklmnop is set", f"token {DOTS} is set"),
        ("ghp_abcdefghijklmnop1234", DOTS),
        ("AKIAABCDEFGHIJKLMNOP", DOTS),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", DOTS),
    ],
)
def test_what_has_the_shape_of_a_secret_is_masked_and_not_written(text: str, shown: str) -> None:
    assert masked_text(text) == shown
    assert hides("ANYTHING", text)
    assert masked({"ANYTHING": text}) == {"ANYTHING": shown}


@pytest.mark.parametrize(
    "text",
    [
        *("/home/t/project123/bin:/usr/bin", "https://host:8080/x", "git@host:team/x.git", "ssh://git@host/x"),
        *("python train.py --lr 3e-4", "task-force-of-many-people", "sk-learn", "loss=0.1;step=3", "basic training"),
        *("https://host/x?page=2&monkey", "hf_hub", "password policies", "a bearer of news"),
    ],
)
def test_other_words_are_left_as_they_are(text: str) -> None:
    assert masked_text(text) == text
    assert not hides("ANYTHING", text)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("t.py", "--api-key", "X", "--lr", "1"), ("t.py", "--api-key", DOTS, "--lr", "1")),
        (("t.py", "--hf-token=Y", "model.api_key=Z"), ("t.py", f"--hf-token={DOTS}", f"model.api_key={DOTS}")),
        (("t.py", "--password", "--verbose", "x"), ("t.py", "--password", "--verbose", "x")),
        (("t.py", "--max-tokens", "512", "--tokens", "9", "-k", "3"), None),
        (("t.py", "--hub", "https://u:P@h/x"), ("t.py", "--hub", f"https://{DOTS}@h/x")),
        (("curl", "-H", "Authorization: Bearer abcdefgh1"), ("curl", "-H", f"Authorization: Bearer {DOTS}")),
    ],
)
def test_a_command_is_shown_without_its_secrets(words: tuple[str, ...], shown: tuple[str, ...] | None) -> None:
    assert masked_words(words) == (shown or words)


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "://" * 70_000, "key=" * 50_000, "eyJ" * 70_000, "http://" + "x" * 200_000]
)
def test_long_text_is_no_burden(text: str) -> None:
    masked_text(text)
