"""The studies, one file for each subject."""
