"""Where people meet: rooms, the participants in them and their seats, uploads, and rooms that are suspended."""
