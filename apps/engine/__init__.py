"""Engine: how a turn thinks: pure, no Django, no I/O, no clock of its own."""
