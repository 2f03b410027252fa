// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "ldp-bayes-client",
    platforms: [.iOS(.v13), .macOS(.v10_15), .tvOS(.v13), .watchOS(.v6)],
    products: [.library(name: "LdpBayes", targets: ["LdpBayes"])],
    targets: [
        .target(name: "LdpBayes"),
        // What tests/phones asks; it reads internals, so that it is built with -enable-testing.
        .executableTarget(name: "Checks", dependencies: ["LdpBayes"], path: "Tests/Checks"),
    ]
)
