"""What is asked. Every node agrees to exactly this document, by its id, before it answers."""

from ldp_protocols import Campaign

CAMPAIGN = Campaign.compile(
    {
        "version": 1,
        "title": "Who comes back within a month?",
        "label": {"name": "readmitted", "classes": ["yes", "no"]},
        "features": [
            {"name": "age", "kind": "continuous", "low": 18, "high": 90},
            {"name": "ward", "kind": "categorical", "values": ["heart", "lung", "other"]},
        ],
        "privacy": {"epsilon": 1},
    }
)

if __name__ == "__main__":
    print(CAMPAIGN.id)
