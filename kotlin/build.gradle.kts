// Untested here: `make kotlin` builds without Gradle, which needs a network that this project's machines have not.
plugins {
    kotlin("jvm") version "2.2.0"
    `java-test-fixtures`
    `maven-publish`
}

group = "org.example.ldpbayes" // a placeholder until there is a public repository
version = "0.1.0"

repositories { mavenCentral() }

kotlin {
    compilerOptions {
        jvmTarget.set(org.jetbrains.kotlin.gradle.dsl.JvmTarget.JVM_1_8)
        javaParameters.set(true)
    }
    sourceSets.named("testFixtures") { kotlin.srcDir("src/testing/kotlin") }
}

java {
    sourceCompatibility = JavaVersion.VERSION_1_8
    targetCompatibility = JavaVersion.VERSION_1_8
    withSourcesJar()
}

publishing {
    publications {
        create<MavenPublication>("client") {
            artifactId = "ldp-bayes-client"
            from(components["java"])
        }
    }
}
