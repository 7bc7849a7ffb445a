"""Data that is not there, or cannot be read."""

from ..model import Remedy, Rule

RULES = (
    Rule(
        id="data_damaged",
        title="A file of the data cannot be read",
        cause="A file of the data set is cut short, empty or of another kind than its name says: an interrupted "
        "download or copy, an error page, a pointer of Git LFS.",
        remedy=Remedy(
            text="Find it (a loop that opens each file once shows which), and download or copy it again, or leave it "
            "out."
        ),
        sources=("yhenon/pytorch-retinanet#93", "Media-Smart/vedastr#72"),
        patterns=(
            r"image file is truncated",
            r"cannot identify image file",
            r"broken data stream when reading image file",
            r"Parquet magic bytes not found",
            r"nable to (?:synchronously )?open (?:file|object) \((?:truncated file|file signature not found)",
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
)
