"""Packages that define studies, by name. The packages are imported at run time, not by import statements."""

STUDIES = ("halocline.study.studies", "halocline.papers")
