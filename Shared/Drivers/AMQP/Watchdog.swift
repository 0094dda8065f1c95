import ConnectionThread
import Glibc
import Synchronization

/// Shuts down the socket of a call that takes too long. The C library can block without limit in a write when the
/// broker does not read (paused, memory alarm). With a socket that is shut down, it returns an error.
final class Watchdog: Sendable {
    private struct Watch {
        var descriptor: Int32?
        var deadline: ContinuousClock.Instant?
    }

    private let watch: Mutex<Watch>
    private let thread: ConnectionThread

    init() {
        let watch = Box()
        self.watch = Mutex(Watch())
        thread = ConnectionThread(name: "amqp-watchdog") {
            watch.owner?.check()
            return ConnectionThread.Sleep(descriptor: nil, limit: .milliseconds(500))
        }
        watch.set(self)
    }

    /// Starts to watch this socket.
    func attach(_ descriptor: Int32) { watch.withLock { $0 = Watch(descriptor: descriptor, deadline: nil) } }

    /// Stops to watch the socket. Must be called before the socket is closed, because its number can be reused.
    func detach() { watch.withLock { $0 = Watch() } }

    /// Sets the deadline of the next calls; nil: no call is in progress.
    func expect(by deadline: ContinuousClock.Instant?) { watch.withLock { $0.deadline = deadline } }

    /// Ends the watchdog's thread.
    func stop() { thread.stop() }

    private func check() {
        watch.withLock { watch in
            guard let descriptor = watch.descriptor, let deadline = watch.deadline, deadline < .now else { return }
            shutdown(descriptor, Int32(SHUT_RDWR))
            watch.deadline = nil
        }
    }

    /// Breaks the cycle between the watchdog and its thread's closure.
    private final class Box: Sendable {
        private let value = Mutex<Weak>(Weak())
        var owner: Watchdog? { value.withLock { $0.watchdog } }
        func set(_ watchdog: Watchdog) { value.withLock { $0.watchdog = watchdog } }
    }

    private struct Weak: Sendable {
        weak var watchdog: Watchdog?
    }
}
