"""Counts the steps of PyTorch's optimizers by the clock, into the file that ``STEP_WITNESS`` names."""

import atexit
import json
import os
import sys
import threading
import time
from pathlib import Path


class _Witness:
    def __init__(self, path: str) -> None:
        self._path = path
        self._pid = os.getpid()
        self._done = self._told = 0
        threading.Thread(target=self._look, daemon=True).start()
        atexit.register(self._tell)

    def _look(self) -> None:
        while not hasattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook"):
            time.sleep(0.02)
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self._stepped)
        while True:
            self._tell()
            time.sleep(0.25)

    def _stepped(self, *args: object) -> None:
        self._done += os.getpid() == self._pid

    def _tell(self) -> None:
        if self._done > self._told and os.getpid() == self._pid:
            self._told = self._done
            with Path(self._path).open("a", encoding="utf-8") as file:
                file.write(json.dumps([time.time(), self._done]) + "\n")


if "STEP_WITNESS" in os.environ and hasattr(sys, "argv"):
    _Witness(os.environ["STEP_WITNESS"])
