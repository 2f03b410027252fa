"""From bytes to integers: reports and shares are decoded and added up exactly. numpy only."""
