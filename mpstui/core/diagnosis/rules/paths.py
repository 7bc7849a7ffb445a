"""Files and folders that the program refers to, and that are missing or of the wrong kind."""

from ..model import Remedy, Rule

_WHERE = (
    "A relative path begins in the folder that the run is started in (`cwd` in its profile, `i` on the screen), not in "
    "the script's own."
)


def _named(error: str) -> tuple[tuple[str, str], ...]:
    """Return ``numbers`` that show the path in an error's message, quoted or bare."""
    before = rf"{error}: (?:\[Errno \d+\] )?[^'\":]{{1,80}}: "
    return (rf"{before}'([^']{{1,200}})'", "{0}"), (rf"{before}([^\s'\"]{{1,200}})", "{0}")


RULES = (
    Rule(
        id="path_missing",
        title="A file or folder does not exist",
        cause="The program opens the path that the message names, or starts a program of that name, and there is none.",
        remedy=Remedy(text=f"Correct the path where it is given: an argument, the profile, a configuration. {_WHERE}"),
        sources=("docs.python.org/3/library/exceptions.html#FileNotFoundError",),
        patterns=(r"FileNotFoundError: \[Errno 2\]", r"can't open file .{1,200}: \[Errno 2\]"),
        weak_patterns=(r"FileNotFoundError: \S",),
        confidence=0.8,
        codes=(1, 2),
        numbers=(*_named("FileNotFoundError"), (r"can't open file '([^']{1,200})': \[Errno 2\]", "{0}")),
    ),
    Rule(
        id="path_is_folder",
        title="There is a folder where a file is expected",
        cause="The program opens the path that the message names as a file, and it is a folder.",
        remedy=Remedy(text=f"Name a file in that folder. {_WHERE}"),
        sources=("docs.python.org/3/library/exceptions.html#IsADirectoryError",),
        patterns=(r"IsADirectoryError: \[Errno 21\]",),
        confidence=0.85,
        numbers=_named("IsADirectoryError"),
    ),
    Rule(
        id="path_is_file",
        title="There is a file where a folder is expected",
        cause="The program looks into the path that the message names, or a part of it, as a folder, and it is a file.",
        remedy=Remedy(text=f"Name the folder, or unpack the archive first where the data came as one. {_WHERE}"),
        sources=("docs.python.org/3/library/exceptions.html#NotADirectoryError",),
        patterns=(r"NotADirectoryError: \[Errno 20\]",),
        confidence=0.85,
        numbers=_named("NotADirectoryError"),
    ),
    Rule(
        id="path_taken",
        title="What the program wants to create already exists",
        cause="The program creates the file or folder that the message names only where there is none: most often the "
        "output of an earlier run.",
        remedy=Remedy(text="Name another place for the output, or move the old one away: a restart would meet it too."),
        sources=("docs.python.org/3/library/exceptions.html#FileExistsError",),
        patterns=(r"FileExistsError: \[Errno 17\]",),
        confidence=0.8,
        numbers=_named("FileExistsError"),
    ),
)
