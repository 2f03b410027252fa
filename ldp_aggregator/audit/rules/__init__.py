"""Rules that need no statistics: ids and coins that repeat, shapes that say something."""
