"""The notifier: a process that lives for one alert. It may take its time, hang or fail; nobody waits for it."""
