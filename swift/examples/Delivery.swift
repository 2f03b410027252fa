// Never run here: glue for an app on Apple's platforms. It asks nobody; it delivers what was contributed.
#if canImport(BackgroundTasks)
import BackgroundTasks
import Foundation
import LdpBayes

let deliveryTask = "org.example.app.ldp-bayes"  // also in Info.plist, BGTaskSchedulerPermittedIdentifiers

/// The app's device. Its folder is in no backup: a restored device would not know what it has answered since. It is in the app's own
/// container: the system ends an app that is suspended with a lock in a shared one.
func device() throws -> Device {
    let support = try FileManager.default.url(for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
    var folder = support.appendingPathComponent("ldp-bayes", isDirectory: true)
    // Also while the telephone is locked, from its first unlocking on.
    let protection = [FileAttributeKey.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication]
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: protection)
    var values = URLResourceValues()
    values.isExcludedFromBackup = true
    try folder.setResourceValues(values)
    return try Device(folder: folder, maxTotalEpsilon: 4)
}

/// A task of the system, which ends once: by its own time, or by the system's, which may be shorter.
private final class Refresh: @unchecked Sendable {
    private let task: BGTask, lock = NSLock()
    private var hasEnded = false
    init(_ task: BGTask) { self.task = task }
    func end(success: Bool) {
        lock.lock()
        defer { lock.unlock() }
        if !hasEnded { task.setTaskCompleted(success: success) }
        hasEnded = true
    }
}

/// To be called before the app has finished launching.
func registerDelivery() {
    BGTaskScheduler.shared.register(forTaskWithIdentifier: deliveryTask, using: nil) { task in
        scheduleDelivery()
        let refresh = Refresh(task)
        // What is not done then stays queued.
        task.expirationHandler = { refresh.end(success: false) }
        // The system gives a refresh half a minute. A first try waits a random time below ten seconds, so that its moment says little.
        Task { refresh.end(success: (try? await device().runOnce(timeout: 20, firstDelay: 10)) ?? false) }
    }
}

func scheduleDelivery() {
    let request = BGAppRefreshTaskRequest(identifier: deliveryTask)
    request.earliestBeginDate = Date(timeIntervalSinceNow: 12 * 3600)
    try? BGTaskScheduler.shared.submit(request)
}
#endif
