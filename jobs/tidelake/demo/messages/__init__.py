"""Encoders of every protocol, which write messages like their producers."""
