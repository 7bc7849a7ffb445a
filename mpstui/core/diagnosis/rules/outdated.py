"""Code that was written for older versions of Python, torch, NumPy or protobuf."""

from ..model import Remedy, Rule

_OF_COLLECTIONS = r"(?:Mutable)?(?:Mapping|Sequence|Set|Iterable|Callable|Hashable)"

RULES = (
    Rule(
        id="old_python",
        title="The code was written for an older Python",
        cause="It uses what newer Pythons removed: `distutils` and `imp` (3.12), `inspect.getargspec` (3.11), the "
        "names in `collections` (3.10), or all that was Python 2.",
        remedy=Remedy(
            text="Start it with the Python it was written for, or fix the line that is named; `distutils` and "
            "`pkg_resources` come back with `pip install 'setuptools<81'`."
        ),
        sources=("docs.python.org/3/whatsnew/3.10.html", "docs.python.org/3/whatsnew/3.12.html"),
        patterns=(
            rf"module \W?collections\W? has no attribute \W?{_OF_COLLECTIONS}\b",
            rf"cannot import name \W{_OF_COLLECTIONS}\W from \W?collections\b",
            r"No module named \W?(?:imp|distutils|pkg_resources|asyncore|asynchat|cgi|pipes|audioop)\b",
            r"module \W?inspect\W? has no attribute \W?getargspec",
            r"module \W?time\W? has no attribute \W?clock\b",
            r"module \W?asyncio\W? has no attribute \W?coroutine\b",
            r"module \W?pkgutil\W? has no attribute \W?ImpImporter",
            r"module \W?fractions\W? has no attribute \W?gcd\b",
            r"cannot import name \Wgcd\W from \W?fractions\b",
            r"mutable default <class .{1,120}> for field \w{1,80} is not allowed",
            r"name \W?(?:xrange|raw_input|unicode|unichr)\W? is not defined",
            r"No module named \W?(?:cPickle|urllib2|ConfigParser|StringIO|__builtin__)\b",
            r"\W?dict\W? object has no attribute \W?(?:iteritems|iterkeys|itervalues|has_key)\b",
        ),
        confidence=0.93,
        outranks=("module_missing", "torch_old_api"),
    ),
    Rule(
        id="old_torch",
        title="The code was written for an older torch",
        cause="It uses what newer versions of torch, torchvision or torchtext have removed or no longer allow.",
        remedy=Remedy(
            text="Fix the line that is named, or install the torch that the project's requirements name into an "
            "environment of its own."
        ),
        sources=("pytorch/pytorch#94709", "github.com/pytorch/pytorch/releases/tag/v2.0.0"),
        patterns=(
            r"No module named \W?torch\._six",
            r"cannot import name \W\w{1,40}\W from \W?torch\._six",
            r"module \W?torch\W? has no attribute \W?(?:i?rfft|symeig|lstsq|gels|solve|eig|btrifact|matrix_rank)\b",
            r"function was deprecated since version [\d.]+ and is now removed",
            r"Legacy autograd function with non-static forward method",
            r"invalid index of a 0-dim tensor\. Use",
            r"only supports boolean masks, but got",
            r"expected (?:predicate|mask|condition) (?:dtype )?to be (?:a )?bool",
            r"Integer division of tensors using div or / is no longer supported",
            r"Subtraction, the `-` operator, with a bool tensor is not supported",
            r"No module named \W?torchvision\.(?:models\.utils|transforms\.functional_tensor)",
            r"No module named \W?torchtext\.(?:legacy|data\.\w+)",
            r"cannot import name \W(?:Field|BucketIterator|TabularDataset|LabelField)\W from \W?torchtext",
            r"torch\.utils\.ffi is deprecated",
            r"No module named \W?torch\.(?:utils\.ffi|nn\.backends)",
            r"THC/THC\w{0,40}\.h(?:pp)?\W{1,3}No such file or directory",
            r"(?:\w{1,30}LR|ReduceLROnPlateau)\.__init__\(\) got an unexpected keyword argument \W?verbose\b",
            r"module \W?torch\.utils\.data\.dataloader\W? has no attribute \W?_DataLoaderIter",
        ),
        confidence=0.94,
        outranks=("torch_old_api", "module_missing", "packages_apart"),
    ),
    Rule(
        id="old_numpy",
        title="The code was written for an older NumPy",
        cause="NumPy 1.24 removed names that had long been aliases of Python's own types (`np.int`, `np.float`, "
        "`np.bool`, `np.object`), NumPy 2 some more.",
        remedy=Remedy(
            text="Write `int`, `float`, `bool` or `np.float64` in the line that is named, or install 'numpy<1.24' into "
            "an environment whose Python is 3.11 or older."
        ),
        sources=("numpy.org/doc/stable/release/1.24.0-notes.html",),
        patterns=(
            r"module \W?numpy\W? has no attribute \W?(?:int|float|bool|object|complex|str|long|unicode|typeDict)\b",
            r"`np\.\w+_?` was (?:a deprecated alias|removed in the NumPy)",
        ),
        confidence=0.95,
        outranks=("numpy2_abi", "torch_old_api"),
    ),
    Rule(
        id="old_protobuf",
        title="A package was made for an older protobuf",
        cause="Files that protoc wrote before 3.19 (`*_pb2.py`) do not work with the compiled part of protobuf 4 and "
        "newer.",
        remedy=Remedy(
            text="Upgrade that package, or install 'protobuf<3.21'; protobuf's slower part in Python still reads such "
            "files.",
            env={"PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
            otherwise="Upgrade that package, or install 'protobuf<3.21'.",
        ),
        sources=("protobuf.dev/news/2022-05-06",),
        patterns=(r"TypeError: Descriptors cannot (?:not )?be created directly",),
        confidence=0.97,
        outranks=("module_missing",),
    ),
)
