"""Rooms of this server as rooms of a LiveKit server."""
