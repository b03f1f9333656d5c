"""Diagnosis of an installation: findings with advice on what is missing."""
