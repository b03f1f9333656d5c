"""Cases: problem files that `halocline run` finds by name. A copy of a case in another folder also runs."""
