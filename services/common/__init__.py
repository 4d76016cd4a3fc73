"""Code that services share and the kernel must not know: money, cards, the vault, roles and HTTP bodies."""
