"""Rulebook: rules of a site, their versioned bundle and the resident compiled sets."""
