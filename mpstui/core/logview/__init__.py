"""The model of a log pane: files of any size as lines, found and searched without reading all of the file."""
