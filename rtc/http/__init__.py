"""What is served over HTTP: the page, offers, uploads, metrics, traces, and the generated protocol pages."""
