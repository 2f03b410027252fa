rootProject.name = "ldp-bayes-client"
