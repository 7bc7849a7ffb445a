"""mpstui: launch, watch and rescue PyTorch trainings from the terminal."""

__version__ = "0.1.0"
