"""Packages of applications, by name: the framework searches them at run time and imports none of them."""

STUDIES = ("halocline.study.studies", "halocline.papers")
