"""What the tasks on words share: attributes of strings, templates, their encoding, names of features."""
