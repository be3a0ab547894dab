"""What a class hands in: each exercise judged by its check, in a process of its own; a table, and a page for each student."""
