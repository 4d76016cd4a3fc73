"""Parts of benchmarks: `http` measures the fast path, `replay` measures past states, verify and rebuild."""
