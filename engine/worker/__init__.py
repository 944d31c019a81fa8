"""The device in a process of its own: the door in the edge, the socket, and what runs behind it."""
