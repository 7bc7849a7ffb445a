"""The notifier: a process that delivers one alert. It may take its time, hang or fail; nobody waits for it."""
