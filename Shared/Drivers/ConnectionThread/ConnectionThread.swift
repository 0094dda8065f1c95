import CLinux
import COpenSSL
import Glibc
import Synchronization

/// A serial executor with its own OS thread, for a blocking C handle.
///
/// An actor with this executor runs only on that thread. So the compiler enforces the one-thread rule of the C
/// libraries, and a blocking call does not occupy the shared pool. Between jobs the thread sleeps in `poll` on its
/// wake-up descriptor and on the descriptor of its turn, if it has one.
package final class ConnectionThread: SerialExecutor {
    /// How the thread sleeps until its next turn.
    package struct Sleep: Sendable {
        /// A descriptor whose readability ends the sleep; nil for none.
        package var descriptor: Int32?
        /// The longest sleep; nil for no limit.
        package var limit: Duration?

        package init(descriptor: Int32?, limit: Duration?) {
            self.descriptor = descriptor
            self.limit = limit
        }
    }

    /// Work of the thread at every wake-up, after its jobs, for example serving a socket.
    package typealias Turn = @Sendable () -> Sleep

    private struct State {
        var jobs: [UnownedJob] = []
        var isWoken = false
        var isStopped = false
        var thread: pthread_t?
    }

    /// OpenSSL, which the C libraries use, frees its locks in an exit handler. A thread that is in a library at that
    /// moment would crash. So the handler is disabled; the system frees the memory at exit (OPENSSL_init_crypto(3)).
    private static let openSSLStays: Int32 = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)

    private let state = Mutex(State())
    private let wakeDescriptor: Int32
    private let turn: Turn?

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: shown by system tools; the kernel cuts it to 15 bytes.
    ///   - turn: called on the thread at every wake-up; must not block without limit.
    package init(name: String, turn: Turn? = nil) {
        wakeDescriptor = mss_eventfd_make()
        precondition(wakeDescriptor >= 0, "no eventfd: out of file descriptors")
        self.turn = turn
        precondition(Self.openSSLStays == 1, "OpenSSL does not start")
        let context = Unmanaged.passRetained(Start(thread: self, name: name))
        var thread = pthread_t()
        let status = pthread_create(&thread, nil, { Start.run($0) }, context.toOpaque())
        precondition(status == 0, "no thread: pthread_create failed with \(status)")
        pthread_detach(thread)
    }

    deinit { close(wakeDescriptor) }

    /// Ends the thread after the waiting jobs. Later jobs are never executed, so call it last.
    package func stop() {
        state.withLock { $0.isStopped = true }
        wake()
    }

    /// Ends the thread's sleep; callable from any thread. Writes to the descriptor only when the thread may sleep,
    /// because each write is a system call.
    package func wake() {
        let mustWrite = state.withLock { state in
            defer { state.isWoken = true }
            return !state.isWoken
        }
        if mustWrite { signal() }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustWrite = state.withLock { state in
            state.jobs.append(job)
            defer { state.isWoken = true }
            return !state.isWoken
        }
        if mustWrite { signal() }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func checkIsolated() { precondition(isOnThread, "not on this connection's thread") }

    package func isIsolatingCurrentContext() -> Bool? { isOnThread }

    private var isOnThread: Bool {
        state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    private func signal() {
        var one: UInt64 = 1
        _ = write(wakeDescriptor, &one, 8)
    }

    private func loop() {
        state.withLock { $0.thread = pthread_self() }
        let executor = asUnownedSerialExecutor()
        while true {
            let (jobs, isStopped) = state.withLock { state in
                defer {
                    state.jobs = []
                    state.isWoken = false
                }
                return (state.jobs, state.isStopped)
            }
            for job in jobs { job.runSynchronously(on: executor) }
            let sleep = turn?() ?? Sleep(descriptor: nil, limit: nil)
            if isStopped, state.withLock({ $0.jobs.isEmpty }) { return }
            poll(sleep)
        }
    }

    private func poll(_ sleep: Sleep) {
        var descriptors = [pollfd(fd: wakeDescriptor, events: Int16(POLLIN), revents: 0)]
        if let descriptor = sleep.descriptor {
            descriptors.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
        }
        let milliseconds = sleep.limit.map { limit in
            Int32(
                clamping: limit.components.seconds * 1_000 + (limit.components.attoseconds + 999_999_999_999_999)
                    / 1_000_000_000_000_000)
        }
        _ = Glibc.poll(&descriptors, nfds_t(descriptors.count), milliseconds ?? -1)
        if descriptors[0].revents != 0 {
            var count: UInt64 = 0
            _ = read(wakeDescriptor, &count, 8)
        }
    }

    /// The arguments of the new thread.
    private final class Start: Sendable {
        let thread: ConnectionThread
        let name: String

        init(thread: ConnectionThread, name: String) {
            self.thread = thread
            self.name = name
        }

        static func run(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
            guard let pointer else { return nil }
            let start = Unmanaged<Start>.fromOpaque(pointer).takeRetainedValue()
            mss_name_this_thread(start.name)
            start.thread.loop()
            return nil
        }
    }
}
