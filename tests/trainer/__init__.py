"""Tests of the training programs: tiny models, few steps."""
