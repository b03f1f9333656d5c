"""What a verb takes: a case or a user's file, ready to run, and the record of a run."""
