"""Table 1 of Yilmaz, Al-Rubaie, Chang 2019: age, income, gender of ten people, and whether they missed a payment."""

PEOPLE = [
    ("young", "low", "male", "yes"),
    ("young", "high", "female", "yes"),
    ("medium", "high", "male", "no"),
    ("old", "medium", "male", "no"),
    ("old", "high", "male", "no"),
    ("old", "low", "female", "yes"),
    ("medium", "low", "female", "no"),
    ("medium", "medium", "male", "yes"),
    ("young", "low", "male", "no"),
    ("old", "high", "female", "no"),
]
