"""Ordinary things that people do around a training, each done without and with a recorder."""
