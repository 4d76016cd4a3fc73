"""The commands of `till`, in the groups that `till --help` shows."""
