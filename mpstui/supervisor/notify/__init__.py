"""The notifier: a process that lives for one alert. It may import at leisure, hang or fail; nobody waits for it."""
