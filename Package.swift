// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "ldp-bayes-client",
    platforms: [.iOS(.v13), .macOS(.v10_15), .tvOS(.v13), .watchOS(.v6)],
    products: [
        .library(name: "LdpBayes", targets: ["LdpBayes"]),
        .library(name: "LdpBayesTesting", targets: ["LdpBayesTesting"]),
    ],
    targets: [
        .target(name: "LdpBayes", path: "swift/Sources/LdpBayes", resources: [.copy("PrivacyInfo.xcprivacy")]),
        // For an app's own tests.
        .target(name: "LdpBayesTesting", dependencies: ["LdpBayes"], path: "swift/Sources/LdpBayesTesting"),
        // Vectors and promises, and the program that tests/phones asks; they read internals, and are built with -enable-testing.
        .target(name: "Checks", dependencies: ["LdpBayes", "LdpBayesTesting"], path: "swift/Tests/Checks"),
        .executableTarget(name: "Program", dependencies: ["Checks", "LdpBayesTesting"], path: "swift/Tests/Program"),
        .testTarget(name: "LdpBayesTests", dependencies: ["Checks"], path: "swift/Tests/LdpBayesTests"),
    ]
)
