"""Pages that reach other machines share one sshd."""

from tests.ssh_lab import ssh_lab

__all__ = ["ssh_lab"]
