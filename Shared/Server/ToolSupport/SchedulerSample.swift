import ArgumentParser
import Foundation
import Glibc

/// The kernel's scheduler counters of all threads of some processes. Each counter begins with its thread.
///
/// Cost model: two files of `/proc` for each thread, about 30 µs of processor time together. A thread that begins and
/// ends between two samples is not counted, so the sum is a little too low for a server that starts many processes.
package struct SchedulerSample: Sendable {
    /// Counts of one thread, or their sums.
    package struct Counts: Hashable, Sendable, Codable {
        /// Time on a processor.
        package var cpuNanoseconds = 0
        /// Voluntary context switches: the thread waited for something.
        package var sleeps = 0
        /// Moves of the thread to another core.
        package var migrations = 0

        package init(cpuNanoseconds: Int = 0, sleeps: Int = 0, migrations: Int = 0) {
            self.cpuNanoseconds = cpuNanoseconds
            self.sleeps = sleeps
            self.migrations = migrations
        }

        package static func + (left: Counts, right: Counts) -> Counts {
            Counts(
                cpuNanoseconds: left.cpuNanoseconds + right.cpuNanoseconds, sleeps: left.sleeps + right.sleeps,
                migrations: left.migrations + right.migrations)
        }

        fileprivate static func - (left: Counts, right: Counts) -> Counts {
            Counts(
                cpuNanoseconds: left.cpuNanoseconds - right.cpuNanoseconds, sleeps: left.sleeps - right.sleeps,
                migrations: left.migrations - right.migrations)
        }
    }

    /// Counts by name of the process and id of the thread.
    private let threads: [String: [Int: Counts]]

    package init(threads: [String: [Int: Counts]]) { self.threads = threads }

    /// Reads the counters of processes.
    ///
    /// - Parameter processes: process ids by name. Processes that have ended are left out.
    package init(of processes: [String: [Int]]) {
        threads = processes.mapValues { pids in
            pids.reduce(into: [:]) { threads, pid in
                for thread in Self.threads(of: pid) {
                    threads[thread] = Self.counts("/proc/\(pid)/task/\(thread)")
                }
            }
        }
    }

    /// Checks that the kernel offers the counters.
    ///
    /// - Throws: `ValidationError` with the missing file.
    package static func check() throws {
        for file in ["/proc/self/schedstat", "/proc/self/sched"] where text(of: file) == nil {
            throw ValidationError("this kernel has no \(file): CPU, sleeps and migrations cannot be measured")
        }
    }

    /// Differences to an earlier sample, summed for each name. A thread that the earlier sample lacks counts from its
    /// begin.
    package func since(_ earlier: SchedulerSample) -> [String: Counts] {
        threads.reduce(into: [:]) { sums, process in
            let before = earlier.threads[process.key] ?? [:]
            sums[process.key] = process.value.reduce(Counts()) { sum, thread in
                guard let start = before[thread.key], start.cpuNanoseconds <= thread.value.cpuNanoseconds else {
                    return sum + thread.value
                }
                return sum + (thread.value - start)
            }
        }
    }

    // MARK: Files

    private static func threads(of pid: Int) -> [Int] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []).compactMap { Int($0) }
    }

    /// The counters in a thread's folder. The value is nil if the thread has ended.
    private static func counts(_ folder: String) -> Counts? {
        guard let times = text(of: folder + "/schedstat"), let details = text(of: folder + "/sched") else { return nil }
        return counts(schedstat: times, sched: details)
    }

    /// Parses the two files. The first number of `schedstat` is the time on a processor (kernel documentation,
    /// sched-stats).
    static func counts(schedstat: String, sched: String) -> Counts? {
        guard let cpu = schedstat.split(separator: " ").first.flatMap({ Int($0) }) else { return nil }
        func number(_ name: String) -> Int {
            guard let key = sched.range(of: name),
                let colon = sched[key.upperBound...].firstIndex(of: ":")
            else { return 0 }
            return Int(sched[sched.index(after: colon)...].drop { $0 == " " }.prefix { $0.isNumber }) ?? 0
        }
        return Counts(
            cpuNanoseconds: cpu, sleeps: number("nr_voluntary_switches"), migrations: number("se.nr_migrations"))
    }

    /// The content of a small file. `FileManager` takes several times as long, and a sample reads hundreds of files.
    private static func text(of path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
            let count = read(file, buffer.baseAddress, buffer.count)
            return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
        }
    }
}
