import Concurrency
import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

/// Limits the file of a store to one client, with a lock of the operating system on a file beside it. Callable from any
/// thread.
///
/// Two clients on one store would hand the same oplogs out twice, and each would queue oplogs again that the other one
/// processes. A client holds the lock from its creation until its first `run()` ends, and during each later `run()`.
/// Between runs it holds the lock only for single steps on the database, so that another client can use the store. The
/// kernel releases the lock when the process ends, so no cleaning is needed.
final class StoreLock: Sendable {
    /// The longest wait for another client that is about to release the store.
    private static let acquireTimeout = Duration.seconds(1)
    private static let pause: UInt32 = 10_000  // Microseconds.

    /// The operating system's lock is held while `isHeld` is true or a step is in progress.
    private struct State {
        var isHeld = true
        var steps = 0
    }

    private let path: String
    private let descriptor: CInt
    private let state = LockedValue(State())

    /// Acquires the lock of the store at the path, and holds it until `release()`. Waits at most 1 s.
    ///
    /// - Throws: `SyncError`: `storeInUse` when another client holds it, `store` when the file cannot be created.
    init(of path: String) throws(SyncError) {
        let lockPath = path + ".lock"
        // Child processes must not inherit the lock.
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw SyncError(
                .store,
                """
                the file \(lockPath) cannot be created (\(String(cString: strerror(errno)))); check folder, space and \
                access rights
                """
            )
        }
        do throws(SyncError) {
            try Self.acquire(descriptor, of: path)
        } catch {
            close(descriptor)
            throw error
        }
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Holds the lock until `release()`. Waits at most 1 s.
    ///
    /// - Throws: as `init`.
    func hold() throws(SyncError) {
        try state.withLock { state throws(SyncError) in
            if !state.isHeld, state.steps == 0 { try Self.acquire(descriptor, of: path) }
            state.isHeld = true
        }
    }

    /// Releases the lock when no step is in progress. Does nothing when the lock is not held.
    func release() {
        state.withLock { state in
            guard state.isHeld else { return }
            state.isHeld = false
            if state.steps == 0 { flock(descriptor, LOCK_UN) }
        }
    }

    /// Begins a step on the database; `endStep()` must follow. Waits at most 1 s when the lock is not held.
    ///
    /// - Returns: whether the lock was held before. If not, another client may have changed the store meanwhile.
    /// - Throws: as `init`; then no step has begun.
    func beginStep() throws(SyncError) -> Bool {
        try state.withLock { state throws(SyncError) in
            if !state.isHeld, state.steps == 0 { try Self.acquire(descriptor, of: path) }
            state.steps += 1
            return state.isHeld
        }
    }

    /// Ends a step that `beginStep()` began.
    func endStep() {
        state.withLock { state in
            state.steps -= 1
            if !state.isHeld, state.steps == 0 { flock(descriptor, LOCK_UN) }
        }
    }

    private static func acquire(_ descriptor: CInt, of path: String) throws(SyncError) {
        let deadline = ContinuousClock.now + acquireTimeout
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let reason = errno
            if reason == EINTR { continue }
            if reason == EWOULDBLOCK, .now < deadline {
                usleep(pause)
                continue
            }
            guard reason == EWOULDBLOCK else {
                throw SyncError(
                    .store,
                    "the file \(path).lock cannot be locked (\(String(cString: strerror(reason)))); use another path")
            }
            throw SyncError(
                .storeInUse,
                """
                the store \(path) is in use by another process, or by another client of this one; end that client, or \
                give each process a store and a device id of its own
                """)
        }
    }
}
