import Synchronization

@testable import OfflineResources

/// The callbacks to the app, in order.
final class Told: ResourceCallbacks {
    enum Call: Sendable, Hashable {
        case synchronized(String, String?, hasConflict: Bool = false)
        case changed(String, String?, hasConflict: Bool = false)
    }

    private let calls = Mutex<[Call]>([])
    private let stream = AsyncStream.makeStream(of: Call.self)

    /// Removes and returns the callbacks so far.
    func drain() -> [Call] {
        calls.withLock { calls in
            defer { calls = [] }
            return calls
        }
    }

    /// The callbacks as they come; for one reader.
    var coming: AsyncStream<Call> { stream.stream }

    private func record(_ call: Call) {
        calls.withLock { $0.append(call) }
        stream.continuation.yield(call)
    }

    func offlineResourceSynchronized(uri: String, resource: Resource?) async {
        record(.synchronized(uri, resource.map { text($0.body) }, hasConflict: resource?.hasConflict ?? false))
    }

    func cachedResourceChanged(uri: String, resource: Resource?) async {
        record(.changed(uri, resource.map { text($0.body) }, hasConflict: resource?.hasConflict ?? false))
    }
}

/// Converts between bytes and text.
func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
