"""A population answers a campaign, at three fidelities that agree: device, vector, counts."""
