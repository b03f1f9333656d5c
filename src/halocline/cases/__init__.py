"""Cases: problem files that `halocline run` knows by name. A copy of one in another folder runs as well."""
