"""Cases: problem files that `halocline run` knows by name. A copy in another folder also runs."""
