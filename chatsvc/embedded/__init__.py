"""`make run`: one supervisor owns a checkout's services. Never imported by an application."""
