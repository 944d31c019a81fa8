"""The same moving picture through plain aiortc, through fastrtc and through us: one sending process each, in turn."""
