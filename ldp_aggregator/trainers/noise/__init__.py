"""Budgets, sensitivities and exact noise: what the guarantees of all trainers rest on."""
