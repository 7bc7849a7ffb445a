"""Tests of the reporter, and of the agent inside programs that know nothing of it."""
