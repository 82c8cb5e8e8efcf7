"""What every room stands on: errors, arrays, files, locks, the terminal, the machine."""
