"""Child processes: started, recorded, found again by later commands, logged and stopped."""
