// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "ldp-bayes-client",
    platforms: [.iOS(.v13), .macOS(.v10_15), .tvOS(.v13), .watchOS(.v6)],
    products: [.library(name: "LdpBayes", targets: ["LdpBayes"])],
    targets: [
        .target(name: "LdpBayes"),
        // Vectors and promises, and the program that tests/phones asks; they read internals, and are built with -enable-testing.
        .target(name: "Checks", dependencies: ["LdpBayes"], path: "Tests/Checks"),
        .executableTarget(name: "Program", dependencies: ["Checks"], path: "Tests/Program"),
        .testTarget(name: "LdpBayesTests", dependencies: ["Checks"]),
    ]
)
