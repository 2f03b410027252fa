// The vectors and the promises by `swift test`, for whoever has a platform that nobody tested here.
import Foundation
import XCTest

@testable import Checks

final class LdpBayesTests: XCTestCase {
    private let vectors = URL(fileURLWithPath: #filePath + "/../../../../protocols/vectors").standardizedFileURL

    func testEveryVector() throws {
        try Vectors(folder: vectors).all()
    }

    func testADeviceKeepsItsPromises() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Promises(vectors: vectors, folder: folder).all()
        try Faults(vectors: vectors, folder: folder).all()
    }
}
