"""What happened, exactly: events, the journal that keeps them, the streams they lie in, and their replay."""
