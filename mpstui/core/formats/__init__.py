"""Reading any training log or metric file.

```python
from mpstui.core.formats import LogReader, read_log, read_metrics, detect, MetricPoint, ParsedLog, strip_controls

reader = LogReader()                    # following a live log: feed bytes as they arrive, in chunks of any size
for point in reader.feed(chunk): ...    # MetricPoint: run, counters, phase, loss (training only), metrics, series ...
reader.primary                          # the series to chart, of the several that a log may hold
reader.summary()                        # ParsedLog: what ``mpstui parse`` prints

read_log(path)                          # ParsedLog of a whole log, metric file, or folder that holds some
read_metrics(path)                      # the same as a list of points
detect(path)                            # a MetricFile for following: poll() -> new points, close(), summary()
strip_controls(text)                    # any text made safe to put on a terminal
```

A console log goes through `console` (bytes to frames), `prefixes`, the grammars of `grammars/` (one file each) and
`tracker` (runs, rival series, phases). Metric files are read by `files/` (one file each). `declared.Declared` is a
grammar made from a profile's own pattern.

Names are imported when they are used: a screen that only needs `strip_controls` does not pay for the grammars.
"""
