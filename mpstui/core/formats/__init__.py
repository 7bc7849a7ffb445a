"""Reading any training log or metric file; docs/formats.md says how.

```python
from mpstui.core.formats.reader import LogReader
from mpstui.core.formats.files import detect, read_log

reader = LogReader()                    # following a live log: feed bytes as they arrive, in chunks of any size
for point in reader.feed(chunk): ...    # MetricPoint: run, counters, phase, loss (training only), metrics, series ...
reader.primary                          # the series to chart, of the several that a log may hold
reader.summary()                        # ParsedLog: what ``mpstui parse`` prints

read_log(path)                          # ParsedLog of a whole log, metric file, or folder that holds some
detect(path)                            # a MetricFile for following: poll() -> new points, close(), summary()
```

A line of a log goes through `console` (bytes to frames), `notices` (what stands beside the numbers), the `grammars`
(one file each) and `tracker` (runs, rival series, what earlier lines said). Metric files are read by `files`.
"""
