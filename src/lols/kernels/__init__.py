"""How Python becomes a kernel: values behind pointers, dual functions, machine code that is kept on disk."""
