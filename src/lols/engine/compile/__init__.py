"""How Python becomes a kernel: values behind pointers, functions with two lives, machine code that is kept on disk."""
