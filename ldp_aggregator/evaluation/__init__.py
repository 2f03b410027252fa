"""Evaluation rounds: how good a published model is, by the answers of devices that it was not trained on."""
