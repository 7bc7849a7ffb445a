"""Reading any training log or metric file."""
from .escapes import strip_controls
from .points import MetricPoint, ParsedLog
from .reader import LogReader
__all__ = ["LogReader", "MetricPoint", "ParsedLog", "strip_controls"]
