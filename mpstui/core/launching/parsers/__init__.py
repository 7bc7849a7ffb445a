"""Parsers of command lines beside argparse, a file each, loaded by the program's own Python when it is asked.

A file has ``PACKAGES``, what a program imports that has such a parser, and ``look(package, keep)``: see to it that
``keep`` is called with the arguments, as dictionaries of ``arguments.Argument``, before the program would train.
Standard library only, in the syntax of Python 3.9.
"""
