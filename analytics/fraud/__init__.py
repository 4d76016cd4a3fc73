"""Fraud detection: facts about customers and payment tokens, rules over them, and the alerts that follow."""
