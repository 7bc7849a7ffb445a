"""Data that is missing or cannot be read."""

from ..model import Remedy, Rule

_GAVE_NONE = (
    r"[^\n]{0,200}\n(?:[^\n]{0,40}[~^]{3}[^\n]{0,160}\n)?[^\n]{0,20}"
    r"Error: 'NoneType' object (?:has no attribute '(?:shape|astype|copy|size)'|is not subscriptable)"
)

RULES = (
    Rule(
        id="data_damaged",
        title="A file of the data cannot be read",
        cause="A file of the data set is cut short, empty or of another kind than its name says (an interrupted "
        "download or copy, an error page, a pointer of Git LFS). Where OpenCV reads it, which then gives None without "
        "a word, it may also be missing.",
        remedy=Remedy(
            text="Find it (a loop that opens each file once shows which, as does printing each path before), and "
            "correct the path, download or copy it again, or leave it out."
        ),
        sources=("yhenon/pytorch-retinanet#93", "Media-Smart/vedastr#72"),
        patterns=(
            r"image file is truncated",
            r"cannot identify image file",
            r"broken data stream when reading image file",
            r"Parquet magic bytes not found",
            r"nable to (?:synchronously )?open (?:file|object) \((?:truncated file|file signature not found)",
            r"\(-215:Assertion failed\) !\w{0,20}\.empty\(\)",
            r"\b(?:imread|imdecode)\(" + _GAVE_NONE,
            r"\b(?:im(?:g|age)?|mask|frame)\w{0,20}\.(?:shape|astype)\b" + _GAVE_NONE,
        ),
        confidence=0.92,
    ),
    Rule(
        id="data_missing",
        title="No data was found",
        cause="The folder of the data is empty, or arranged otherwise than the program expects, or its path is wrong.",
        remedy=Remedy(
            text="Correct the path (a relative one begins in the folder where the run is started); torchvision "
            "fetches its own data sets with download=True."
        ),
        sources=("torchvision/datasets/folder.py", "torch/utils/data/sampler.py"),
        patterns=(
            r"num_samples should be a positive integer value, but got num_samples ?= ?0",
            r"Dataset not found(?: or corrupted)?\. You can use download ?= ?True",
            r"Couldn't find any class folder in",
            r"Found no valid file for the classes",
            r"Error: Found 0 (?:files|images|samples) in",
        ),
        confidence=0.92,
    ),
    Rule(
        id="batch_not_numbers",
        title="A batch could not be made of the samples",
        cause="Samples become one tensor a field, and a field holds text, images or lists of different lengths: text "
        "that was not tokenized, labels that are words, sequences without padding.",
        remedy=Remedy(
            text="Turn that field into numbers of one size (tokenize it with truncation and padding, map labels to "
            "integers, ToTensor for images), leave it out (datasets: `remove_columns`), or give the loader a "
            "collate_fn of your own."
        ),
        sources=("argilla-io/argilla#4513", "torch/utils/data/_utils/collate.py"),
        patterns=(
            r"too many dimensions 'str'",
            r"Unable to create tensor, you should probably activate truncation",
            r"default_collate: batch must contain tensors",
            r"each element in list of batch should be of equal size",
            r"can't convert np\.ndarray of type numpy\.(?:object_|str_)",
        ),
        numbers=(
            (r"Perhaps your features \(`(\w{1,60})` in this case\)", "{0}"),
            (r"batch must contain .{1,80}; found (?:object )?(?:<class )?'?([\w.]{1,60})", "{0}"),
        ),
        confidence=0.9,
    ),
    Rule(
        id="data_format",
        title="The rows of the data do not have one form",
        cause="A table is read with the columns and types of its first rows, and a later row or file has others: a "
        "number where there was text, a list for a single value, a comma too many.",
        remedy=Remedy(
            text="Give each column one type in all rows and files (the exceptions before the last one name it), or say "
            "the types when it is read (datasets: `features=`; pandas: `dtype=`, `on_bad_lines=`)."
        ),
        sources=("findalexli/mllm-dpo#2", "datasets/builder.py"),
        patterns=(
            r"ArrowInvalid: JSON parse error",
            r"Arrow(?:Invalid|TypeError): (?:Expected \w|Could not convert|Column\()",
            r"\bCastError: Couldn't cast",
            r"\bDatasetGenerationCastError\b",
            r"ParserError: Error tokenizing data",
        ),
        confidence=0.85,
    ),
)
