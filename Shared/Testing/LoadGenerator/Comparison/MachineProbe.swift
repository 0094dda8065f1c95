import CLinux
import Foundation
import Glibc
import Synchronization

/// Measures the machine during a comparison: the wait for the disk, and the time of a wake-up on the other core.
///
/// Cost model: ten times a second 8 KiB with `fdatasync`, and about a thousand times a second a byte to a thread on
/// the last core and back. This takes about 5 % of a core, for both sides of a comparison alike.
final class MachineProbe: Sendable {
    private struct Measured {
        var syncs = LatencyHistogram()
        var pings = LatencyHistogram()
    }

    private static let blockBytes = 8_192
    private static let blocks = 256
    private static let syncPauseMicroseconds: UInt32 = 100_000
    private static let pingPauseMicroseconds: UInt32 = 1_000

    private let measured = Mutex(Measured())
    private let isStopped = Atomic(false)

    /// Starts the threads.
    ///
    /// - Parameter folder: folder on the disk that is measured. The probe's file is gone from it at once.
    /// - Throws: `POSIXError` if the file or the pipes cannot be made.
    init(folder: String) throws {
        let path = "\(folder)/machine-probe"
        let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        unlink(path)
        var (there, back): ([Int32], [Int32]) = ([0, 0], [0, 0])
        guard pipe(&there) == 0, pipe(&back) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        let (outward, inward) = ((read: there[0], write: there[1]), (read: back[0], write: back[1]))
        Thread { self.sync(file) }.start()
        Thread { self.ping(to: outward.write, from: inward.read) }.start()
        Thread { Self.echo(from: outward.read, to: inward.write) }.start()
    }

    /// Ends the threads.
    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// Discards the measurements so far.
    func reset() { measured.withLock { $0 = Measured() } }

    /// The longest `fdatasync` in milliseconds and the median ping in microseconds since `reset`.
    var result: (longestSync: Double, ping: Double) {
        measured.withLock {
            (Double($0.syncs.maximum) / 1e6, Double($0.pings.nanoseconds(at: 0.5)) / 1e3)
        }
    }

    // MARK: Threads

    private func sync(_ file: Int32) {
        defer { close(file) }
        let block = [UInt8](repeating: 0x5a, count: Self.blockBytes)
        // The blocks exist before the first measurement, because growth of a file costs more than a write.
        for number in 0..<Self.blocks { pwrite(file, block, block.count, off_t(number * block.count)) }
        fsync(file)
        var number = 0
        while !isStopped.load(ordering: .relaxed) {
            usleep(Self.syncPauseMicroseconds)
            pwrite(file, block, block.count, off_t(number % Self.blocks * block.count))
            let start = LoadRun.now
            fdatasync(file)
            let took = LoadRun.now - start
            measured.withLock { $0.syncs.record(nanoseconds: took) }
            number += 1
        }
    }

    private func ping(to out: Int32, from back: Int32) {
        Self.pin(toCore: 0)
        var byte: UInt8 = 1
        while !isStopped.load(ordering: .relaxed) {
            usleep(Self.pingPauseMicroseconds)
            let start = LoadRun.now
            guard write(out, &byte, 1) == 1, read(back, &byte, 1) == 1 else { break }
            let took = LoadRun.now - start
            measured.withLock { $0.pings.record(nanoseconds: took) }
        }
        // The other thread reads the end and ends too.
        close(out)
        close(back)
    }

    private static func echo(from input: Int32, to output: Int32) {
        pin(toCore: max(0, sysconf(Int32(_SC_NPROCESSORS_ONLN)) - 1))
        var byte: UInt8 = 0
        while read(input, &byte, 1) == 1, write(output, &byte, 1) == 1 {}
        close(input)
        close(output)
    }

    /// A process that may not use this core stays where the kernel puts it. Its pings then do not cross cores.
    private static func pin(toCore core: Int) { _ = mss_pin_this_thread(Int32(core)) }
}

/// Processor time of the whole machine, from `/proc/stat`.
struct MachineTime: Sendable {
    /// Time in which the hypervisor ran something else, in clock ticks of all cores.
    let stolen: Int
    /// All time, in clock ticks of all cores.
    let total: Int

    /// Reads the counters.
    static func read() -> MachineTime {
        MachineTime(
            FileManager.default.contents(atPath: "/proc/stat").map { String(decoding: $0, as: UTF8.self) } ?? "")
    }

    /// Parses the first line: user, nice, system, idle, iowait, irq, softirq, steal (proc(5)). The guests' times after
    /// them are part of user and nice.
    init(_ text: String) {
        let times = text.prefix { $0 != "\n" }.split(separator: " ").dropFirst().prefix(8).map { Int($0) ?? 0 }
        stolen = times.count == 8 ? times[7] : 0
        total = times.reduce(0, +)
    }

    /// Percentage of the time since an earlier reading that was stolen.
    func stolenPercent(since earlier: MachineTime) -> Double {
        total > earlier.total ? 100 * Double(stolen - earlier.stolen) / Double(total - earlier.total) : 0
    }
}
