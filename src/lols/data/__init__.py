"""Small tables that come with the library: classes and costs of the KDD Cup 1999 contest."""
