import Foundation

@testable import LdpBayes

final class Promises {
    init(vectors: URL, folder: URL) throws {}
    func all() throws {}
}
