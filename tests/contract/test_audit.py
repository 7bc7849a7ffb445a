"""`make audit` says what was found, what could not be looked at, and when its own tools see nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP_AUDIT = """
import json, os, sys, urllib.request
pinned = [line.split()[0].split('==') for line in open(sys.argv[sys.argv.index('-r') + 1]) if '==' in line]
case = os.environ['CASE']
if case == 'blind':
    sys.exit('No module named pip_audit')
told = []
for name, version in pinned:
    one = {'name': name, 'version': version, 'vulns': []}
    if '--osv-url' in sys.argv:
        asked = json.dumps({'package': {'name': name, 'ecosystem': 'PyPI'}, 'version': version}).encode()
        answer = json.load(urllib.request.urlopen(sys.argv[sys.argv.index('--osv-url') + 1], asked))
        one['vulns'] = [{'id': hole['id'], 'fix_versions': []} for hole in answer.get('vulns', ())]
    elif case == 'unreachable':
        sys.exit('Could not connect to the vulnerability feed')
    elif case == 'unknown' or case == 'half' and name > 'm':
        one = {'name': name, 'skip_reason': 'not found'}
    elif case == 'hole' and name == 'jinja2':
        one['vulns'] = [{'id': 'CVE-1', 'fix_versions': ['9.9']}]
    told.append(one)
print(json.dumps({'dependencies': told, 'fixes': []}))
sys.exit(any(one.get('vulns') for one in told))
"""
BANDIT = """
import json, os, sys
case, results = os.environ['CASE'], []
if 'mpstui' not in sys.argv or case == 'place':
    results = [{'filename': 'mpstui/a.py', 'line_number': 7, 'test_id': 'B602', 'issue_text': 'a shell'}]
errors = [{'filename': 'mpstui/b.py', 'reason': 'syntax error'}] if case == 'unread' else []
print(json.dumps({'results': results, 'errors': errors}))
sys.exit(bool(results))
"""


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("clean", 0, [" audited, 0 known holes", "audit: nothing was found\n"]),
        ("hole", 1, [" audited, 1 known hole", "jinja2 3.1.6: CVE-1, mended in 9.9", "audit: something was found"]),
        ("unreachable", 0, ["packages: not audited", "Could not connect", "audit: not whole"]),
        ("unknown", 0, ["none of ", "audit: not whole"]),
        ("half", 0, ["not audited, the service does not know markdown-it-py", "audit: not whole"]),
        ("place", 1, ["mpstui/a.py:7: B602 a shell", "audit: something was found"]),
        ("unread", 0, ["not audited: mpstui/b.py (syntax error)", "audit: not whole"]),
        ("blind", 1, ["pip-audit is blind", "No module named pip_audit", "audit: something was found"]),
    ],
)
def test_each_outcome_has_its_sentence_and_only_what_was_audited_is_clean(
    case: str, code: int, said: list[str], tmp_path: Path
) -> None:
    for name, program in (("pip_audit", PIP_AUDIT), ("bandit", BANDIT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__main__.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "scripts/audit.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "CASE": case},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    for words in said:
        assert words in done.stdout + done.stderr


def test_a_service_is_asked_at_the_address_that_was_named(tmp_path: Path) -> None:
    (tmp_path / "pip_audit").mkdir()
    (tmp_path / "pip_audit" / "__main__.py").write_text("import sys; sys.exit(' '.join(sys.argv))")
    done = subprocess.run(
        [sys.executable, "scripts/audit.py", "http://127.0.0.1:9/query"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--osv-url http://127.0.0.1:9/query" in done.stdout
