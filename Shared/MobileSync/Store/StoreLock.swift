import Foundation
import Synchronization

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

/// Keeps a store's file to one client: a lock of the operating system on a file beside it. Callable from any thread.
///
/// Two processes on one store would hand the same oplogs out twice, and each would queue again what the other one is
/// processing. A client holds the lock from its creation until its `run()` ends, and during each later `run()`. Between
/// runs it holds the lock only for single steps on the database, so that another client can take the store. The kernel
/// releases the lock when the process ends, however it ends, so that nothing has to be cleaned up.
final class StoreLock: Sendable {
    /// How long a client waits for another one that is about to release the store.
    private static let patience = Duration.seconds(1)
    private static let pause: UInt32 = 10_000  // Microseconds.

    /// The operating system's lock is held while the client holds it, or a step is under way.
    private struct State {
        var isHeld = true
        var steps = 0
    }

    private let path: String
    private let descriptor: CInt
    private let state = Mutex(State())

    /// Acquires the lock of the store at the path, and holds it until `release()`; waits a second at the most.
    ///
    /// - Throws: `SyncError`: `storeInUse` when another client holds it, `store` when the file cannot be made.
    init(of path: String) throws(SyncError) {
        let lockPath = path + ".lock"
        // A program that this process starts does not inherit it.
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw SyncError(
                .store,
                "the file \(lockPath) cannot be made (\(String(cString: strerror(errno)))); check folder, space and rights"
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

    /// Holds the lock from now on, until `release()`; waits a second at the most.
    ///
    /// - Throws: As `init`.
    func hold() throws(SyncError) {
        try state.withLock { state throws(SyncError) in
            if !state.isHeld, state.steps == 0 { try Self.acquire(descriptor, of: path) }
            state.isHeld = true
        }
    }

    /// Lets another client take the store, as soon as no step is under way. Does nothing when the lock is not held.
    func release() {
        state.withLock { state in
            guard state.isHeld else { return }
            state.isHeld = false
            if state.steps == 0 { flock(descriptor, LOCK_UN) }
        }
    }

    /// Begins a step on the database; `endStep()` must follow. Waits a second at the most when the lock is not held.
    ///
    /// - Returns: whether the lock was held before. Otherwise another client may have changed the store meanwhile.
    /// - Throws: As `init`; then no step has begun.
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
        let deadline = ContinuousClock.now + patience
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
