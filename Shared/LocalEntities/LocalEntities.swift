/// To be replaced.
