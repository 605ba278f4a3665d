"""The course's machinery: build the notebooks, start a working copy, grade it."""
