"""Who talks to a server: the page, the Python client, and the synthetic ones that measure."""
