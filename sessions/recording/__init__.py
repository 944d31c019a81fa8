"""Films of sessions, remuxed from the frames that were sent: recorder, summary, and the folder they lie in."""
