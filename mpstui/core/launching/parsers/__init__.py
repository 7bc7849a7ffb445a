"""Command-line parsers other than argparse, one file each, loaded by the program's own Python to ask for its arguments.

Each file has ``PACKAGES``, which programs with such a parser import, and ``look(package, keep)``, which makes sure that
``keep`` is called with the arguments, as dictionaries of ``arguments.Argument``, before the program would train.
Standard library only, in the syntax of Python 3.9.
"""
