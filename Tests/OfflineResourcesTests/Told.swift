import Synchronization

@testable import OfflineResources

/// What the callbacks were told, in order.
final class Told: ResourceCallbacks {
    enum Call: Sendable, Hashable {
        case synchronized(String, String?, hasConflict: Bool = false)
        case changed(String, String?)
    }

    private let calls = Mutex<[Call]>([])
    private let stream = AsyncStream.makeStream(of: Call.self)

    /// Since the last time.
    func take() -> [Call] {
        calls.withLock { calls in
            defer { calls = [] }
            return calls
        }
    }

    /// The next one that comes; for one reader.
    var coming: AsyncStream<Call> { stream.stream }

    private func note(_ call: Call) {
        calls.withLock { $0.append(call) }
        stream.continuation.yield(call)
    }

    func offlineResourceSynchronized(uri: String, resource: Resource?) async {
        note(.synchronized(uri, resource.map { text($0.body) }, hasConflict: resource?.hasConflict ?? false))
    }

    func cachedResourceChanged(uri: String, resource: Resource?) async {
        note(.changed(uri, resource.map { text($0.body) }))
    }
}

/// Bytes as text, and text as bytes.
func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
func bytes(_ text: String) -> [UInt8] { [UInt8](text.utf8) }
