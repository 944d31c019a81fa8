"""The sessions of a server as people look through them: pages, films, timelines."""
