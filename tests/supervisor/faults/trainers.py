"""Trainers of a few lines, standard library only. Each notes every start and every signal it gets in its folder."""

from __future__ import annotations

_HEAD = """
import os, signal, subprocess, sys, time
def note(name, text=''):
    with open(name, 'a') as file: file.write(text + '\\n')
note('starts', str(os.getpid()))
def until(name, seconds=300):
    end = time.time() + seconds
    while not os.path.exists(name) and time.time() < end: time.sleep(0.01)
"""

WAITS = _HEAD + "print('up', flush=True)\nuntil('finish')\nraise SystemExit(7)"
"""Runs until told to finish, then exits with 7."""

WAITS_WELL = WAITS.replace("SystemExit(7)", "SystemExit(0)")

ENDS = _HEAD + "note('ended', repr(time.time())); raise SystemExit(7)"

SLOW_TO_STOP = _HEAD + (
    "def term(n, f):\n note('terms'); time.sleep(0.8); os._exit(0)\n"
    "signal.signal(15, term)\nprint('up', flush=True)\nuntil('finish')"
)
"""Needs almost a second to leave, and counts how often it was asked."""

SAVES = _HEAD + (
    "def term(n, f):\n"
    " note('terms'); os.makedirs(os.environ['MPSTUI_RUN_DIR'] + '/checkpoints', exist_ok=True)\n"
    " path = os.environ['MPSTUI_RUN_DIR'] + '/checkpoints/.last.pt.tmp'\n"
    " for _ in range(20):\n  note(path, 'x' * 1000); time.sleep(0.1)\n"
    " os.rename(path, path.replace('.last.pt.tmp', 'last.pt')); note('saved'); os._exit(0)\n"
    "signal.signal(15, term)\nprint('up', flush=True)\nuntil('finish')"
)
"""Writes a checkpoint for two seconds when asked to stop."""

STUBBORN = _HEAD + "signal.signal(15, lambda n, f: note('terms'))\nprint('up', flush=True)\nuntil('finish')"

WORKERS = _HEAD + (
    "for _ in range(8):\n"
    " if os.fork() == 0:\n  signal.signal(15, signal.SIG_IGN); until('finish'); os._exit(0)\n"
    "print('up', flush=True)\nuntil('finish')"
)
"""Eight forked workers that ignore SIGTERM."""

HYDRA = _HEAD + (
    "trainer, over = os.getpid(), None\n"
    "for _ in range(4):\n"
    " if os.fork() == 0:\n"
    "  os.setsid()\n"
    "  while over is None or time.monotonic() < over:\n"
    "   try: os.kill(trainer, 0)\n"
    "   except OSError: over = over or time.monotonic() + 0.4\n"
    "   time.sleep(0.01)\n"
    "   if os.fork(): os._exit(0)\n"
    "   os.setsid()\n"
    "  time.sleep(60); os._exit(0)\n"
    "print('up', flush=True)\nuntil('finish')"
)
"""Four lines of processes, each with a hundredth of a second to live; 0.4 s after the trainer's end they stay."""

RANKS = _HEAD + (
    "code = 'import signal,time; signal.signal(15, signal.SIG_IGN); print(\"rank\", flush=True); time.sleep(30)'\n"
    "ranks = [subprocess.Popen([sys.executable, '-I', '-S', '-c', code], start_new_session=True) for _ in range(2)]\n"
    "time.sleep(0.2); print('up', flush=True)\nuntil('finish')"
)
"""As torchrun does: each rank in a session of its own, without the inherited descriptors."""

GRANDCHILD = _HEAD + (
    "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
    "  os.closerange(0, 64); time.sleep(30); os._exit(0)\n os._exit(0)\n"
    "os.wait(); print('up', flush=True)\nuntil('finish')"
)
"""A daemon of its own: double fork, new session, every descriptor closed."""

DAEMON = _HEAD + (
    "if os.fork() == 0:\n"
    " os.setsid()\n"
    " if os.fork() == 0:\n"
    "  note('daemon', str(os.getpid())); os.closerange(0, 64); os.execve('/bin/sleep', ['sleep', '60'], {})\n"
    " os._exit(0)\n"
    "os.wait(); print('up', flush=True)\nuntil('finish')"
)
"""Leaves a daemon at once: another session, no descriptors, no environment, no parent."""

SLIPS = _HEAD + (
    "if os.fork() == 0:\n"
    " os.closerange(0, 64); os.execve('/bin/sleep', ['sleep', '20'], {})\n"
    "time.sleep(0.1); print('up', flush=True); raise SystemExit(7)"
)
"""Ends at once and leaves a child in its session that kept neither descriptors nor environment."""

CRASHES = _HEAD + (
    "import json\n"
    "place = os.environ['MPSTUI_RUN_DIR'] + '/attempts/' + os.environ['MPSTUI_ATTEMPT'] + '/heartbeat.json'\n"
    "json.dump({'schema': 1, 'time': time.time(), 'seq': 1, 'step': 5, 'phase': 'train'}, open(place, 'w'))\n"
    "print('up\\nMPS backend out of memory', flush=True); raise SystemExit(1)"
)
"""Runs out of memory at step 5, each time."""

FLOODS = _HEAD + "while True: print('x' * 1000, flush=True)"
"""Prints until the disk is full, and ends of it."""

FLOODS_FOR_EVER = _HEAD + (
    "print('up', flush=True)\nwhile True:\n try: os.write(1, b'x' * 1000 + b'\\n')\n except OSError: time.sleep(0.001)"
)
"""Prints as soon as there is room."""

DATALOADER = _HEAD + (
    "from torch.utils.data import DataLoader\n"
    "loader = iter(DataLoader(range(10000), num_workers=8))\n"
    "next(loader); print('up', flush=True)\nuntil('finish', 120)"
)
"""torch's loader with eight workers."""

NOISE = _HEAD + (
    "out = sys.stdout.buffer\nout.write(b'\\xff\\xfe broken \\x80\\n\\x1b]0;unterminated title \\x1b[38;5;')\n"
    "for _ in range(100): out.write(b'a' * (1 << 20))\n"
    "out.write(b'\\rMPS backend out of memory'); out.flush(); raise SystemExit(7)"
)
"""Bytes that are no text, a line of 100 MB, escape sequences that never end."""
