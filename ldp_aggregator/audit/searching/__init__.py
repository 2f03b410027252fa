"""Events that tell people apart, and the loss that their counts prove."""
