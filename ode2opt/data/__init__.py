"""Data as people have them: files, frames, datasets by name, and how columns become numbers."""
