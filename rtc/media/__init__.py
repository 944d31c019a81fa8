"""What leaves as RTP: the connection of one viewer, its packets, its bitrate, and the ports it may use."""
