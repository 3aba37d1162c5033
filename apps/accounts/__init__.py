"""Accounts: workspaces, agents, teams, roles, widget sites and keys."""
