import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#endif

/// Keeps a store's file to one client: a lock of the operating system on a file beside it.
///
/// Two processes on one store would hand the same oplogs out twice, and each would queue again what the other one is
/// processing. The kernel releases the lock when its holder ends, however it ends, so that nothing has to be cleaned
/// up.
final class StoreLock {
    /// How long a client that has just ended may take to let go of the store.
    private static let patience = Duration.seconds(1)
    private static let pause: UInt32 = 10_000  // Microseconds.

    private let descriptor: CInt

    /// Takes the lock of the store at the path; waits a second at the most.
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
        let deadline = ContinuousClock.now + Self.patience
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let reason = errno
            if reason == EINTR { continue }
            if reason == EWOULDBLOCK, .now < deadline {
                usleep(Self.pause)
                continue
            }
            close(descriptor)
            guard reason == EWOULDBLOCK else {
                throw SyncError(
                    .store,
                    "the file \(lockPath) cannot be locked (\(String(cString: strerror(reason)))); use another path")
            }
            throw SyncError(
                .storeInUse,
                """
                the store \(path) is in use by another process, or by another client of this one; end that client, or \
                give each process a store and a device id of its own
                """)
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
