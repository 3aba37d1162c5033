"""Web: pages: dashboard shell, widget frame, loader, demo shop."""
