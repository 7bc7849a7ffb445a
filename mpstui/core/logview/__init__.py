"""What a log pane needs: a file of any size as lines, found and searched without reading all of it."""
