import Foundation

/// What a device needs of a storage: bytes by name. Whatever fails throws ``LdpError``, and nothing is changed then. An app may bring
/// its own. A device keeps one text with everything that it must not lose (secret, ledger, consents, drawn answers, queue), so that one
/// atomic change debits the ledger and queues the report.
public protocol Storage: Sendable {
    /// The bytes of a name, nil where there are none. Creates nothing.
    func read(_ name: String) throws -> Data?
    /// Replaces the bytes of a name by what `change` makes of them (nil: deletes them), at once and all or nothing, one caller after
    /// the other among all threads and processes. When it returns, they are on disk. Where `change` throws, nothing is changed.
    func change(_ name: String, _ change: (Data?) throws -> Data?) throws
    /// Throws where nothing could be kept now, as far as that can be told: nobody is then asked. Leaves nothing behind.
    func check() throws
    /// Deletes everything.
    func clear() throws
    /// Does `work` while no other thread or process does its own; nil where that does not come about within `wait`.
    func exclusive<T>(wait: TimeInterval, _ work: () throws -> T) throws -> T?
}

extension Storage { public func check() throws {} }

/// A folder with a file for each name: written beside it, synced, renamed over it, and the folder synced. Safe with any number of threads
/// and processes; the system unlocks what a killed process has held. On Apple's platforms it belongs into Application Support, out of
/// every backup (`isExcludedFromBackup`): a device that comes back from a backup does not know what it has answered since.
public struct FileStorage: Storage {
    private let folder: String
    private static let locks = (changing: "changing.lock", sending: "sending.lock")
    private static let longestWait = 10.0, poll: UInt32 = 5000, roomBytes = 1 << 16  // seconds, microseconds
    public init(folder: URL) { self.folder = folder.standardizedFileURL.path }
    public func read(_ name: String) throws -> Data? {
        guard let file = try opened(name, O_RDONLY) else { return nil }
        defer { close(file) }
        return try available { try FileHandle(fileDescriptor: file).readToEnd() ?? Data() }
    }
    public func change(_ name: String, _ change: (Data?) throws -> Data?) throws {
        try changing {
            let before = try read(name)
            let after = try change(before)
            if after != before { try put(name, after) }
        }
    }
    public func clear() throws {
        guard FileManager.default.fileExists(atPath: folder) else { return }
        try changing {
            let names = try available { try FileManager.default.contentsOfDirectory(atPath: folder) }
            for name in names where name != FileStorage.locks.changing && name != FileStorage.locks.sending { try put(name, nil) }
        }
    }
    public func exclusive<T>(wait: TimeInterval, _ work: () throws -> T) throws -> T? { try locked(FileStorage.locks.sending, wait, work) }
    private func changing(_ work: () throws -> Void) throws {
        try ensure(try locked(FileStorage.locks.changing, FileStorage.longestWait, work) != nil, "storage-busy")
    }
    private func path(_ name: String) -> String { "\(folder)/\(name)" }
    private func put(_ name: String, _ bytes: Data?) throws {
        if let bytes {
            let draft = try opened("draft", O_WRONLY | O_CREAT | O_TRUNC)!
            defer { close(draft) }
            try fill(draft, bytes)
            try flush(draft)
            try checked(rename(path("draft"), path(name)))
        } else {
            try checked(unlink(path(name)))
        }
        try sync(folder)
    }
    private func fill(_ file: Int32, _ bytes: Data) throws {
        try bytes.withUnsafeBytes { all in
            var done = 0
            while done < all.count { done += try checked(write(file, all.baseAddress! + done, all.count - done)) }
        }
    }
    /// Apple's `fsync` leaves it to the drive when it writes.
    private func flush(_ file: Int32) throws {
        #if canImport(Darwin)
        if fcntl(file, F_FULLFSYNC) == 0 { return }
        #endif
        try checked(fsync(file))
    }
    /// Makes what happened in a folder outlast a loss of power.
    private func sync(_ folder: String) throws {
        let file = try checked(open(folder, O_RDONLY | O_CLOEXEC))
        defer { close(file) }
        try flush(file)
    }
    /// Nil where it is to be read and is not there.
    private func opened(_ name: String, _ flags: Int32) throws -> Int32? {
        let file = open(path(name), flags | O_CLOEXEC, 0o600)
        return file < 0 && errno == ENOENT && flags == O_RDONLY ? nil : try checked(file)
    }
    /// The folder, and all above it.
    private var above: UnfoldFirstSequence<String> {
        sequence(first: folder) { $0 == "/" ? nil : ($0 as NSString).deletingLastPathComponent }
    }
    /// Writes, and deletes, where the folder is or would be made.
    public func check() throws {
        let present = above.first { FileManager.default.fileExists(atPath: $0) } ?? "/"
        let tried = "\(present)/draft-\(UUID().uuidString)"
        let file = try checked(open(tried, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
        defer {
            close(file)
            unlink(tried)
        }
        try fill(file, Data(count: FileStorage.roomBytes))
    }
    private func makeFolder() throws {
        for missing in above.prefix(while: { !FileManager.default.fileExists(atPath: $0) }).reversed() {
            if mkdir(missing, 0o700) != 0, errno != EEXIST { throw unavailable() }
            try sync((missing as NSString).deletingLastPathComponent)
        }
    }
    /// A lock belongs to the opened file, so that threads take turns like processes.
    private func locked<T>(_ name: String, _ wait: TimeInterval, _ work: () throws -> T) throws -> T? {
        let until = monotonic() + wait
        try makeFolder()
        let file = try opened(name, O_WRONLY | O_CREAT)!
        defer { close(file) }
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            if errno != EWOULDBLOCK && errno != EINTR { throw unavailable() }
            if monotonic() >= until { return nil }
            usleep(FileStorage.poll)
        }
        return try work()
    }
    @discardableResult
    private func checked<N: SignedInteger>(_ status: N) throws -> N { try status < 0 ? raise(unavailable()) : status }
    private func unavailable() -> LdpError {
        let words = String(cString: strerror(errno))
        switch errno {
        case ENOSPC, EDQUOT, EFBIG: return failure("storage-full", words)
        case EROFS, EACCES, EPERM: return failure("storage-read-only", words)
        default: return failure("storage-unavailable", words)
        }
    }
    private func available<T>(_ work: () throws -> T) throws -> T { try refused(as: "storage-unavailable", work) }
}
