"""Packages with studies of applications, by name: imported at run time, by no import statement."""

STUDIES = ("halocline.study.studies", "halocline.papers")
