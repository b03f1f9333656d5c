"""Studies, one file for each subject."""
