import Foundation
import Glibc

/// The processes of this machine, read once from `/proc`, by parent.
package struct ProcessTree {
    private var children: [Int: [Int]] = [:]
    private var ticks: [Int: Int] = [:]
    private static let ticksPerSecond = sysconf(Int32(_SC_CLK_TCK))

    package init() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for pid in names.compactMap({ Int($0) }) {
            guard let fields = Self.stat(pid) else { continue }
            children[fields.parent, default: []].append(pid)
            ticks[pid] = fields.ticks
        }
    }

    /// Ids of the running child processes.
    package func children(of pid: Int) -> [Int] { children[pid] ?? [] }

    /// Ids of a process and its running descendants.
    package func family(of root: Int) -> [Int] {
        var (pending, found) = ([root], [Int]())
        while let pid = pending.popLast() {
            pending += children[pid] ?? []
            found.append(pid)
        }
        return found
    }

    /// Resource use of a process and its descendants.
    ///
    /// - Parameter calls: folder with the files of the counting library. The value is nil if calls are not counted.
    package func sample(_ root: Int, calls: String?) -> ProcessSample {
        var sample = ProcessSample()
        var (shared, cpuTicks) = (0, 0)
        for pid in family(of: root) {
            cpuTicks += ticks[pid] ?? 0
            let status = Self.numbers(of: "/proc/\(pid)/status", ["RssAnon", "RssShmem"])
            sample.residentBytes += status[0] * 1_024
            shared = max(shared, status[1] * 1_024)
            sample.wakeUps += Self.wakeUps(pid)
            if let folder = calls, let counts = Self.calls("\(folder)/\(pid)") {
                sample.allocations = (sample.allocations ?? 0) + counts.allocations
                sample.sends = (sample.sends ?? 0) + counts.sends
            }
        }
        sample.residentBytes += shared
        sample.cpuMicroseconds = cpuTicks * 1_000_000 / Self.ticksPerSecond
        return sample
    }

    /// Whether the process runs a build without optimisation.
    package static func isDebug(_ pid: Int) -> Bool {
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/exe")
        return path?.contains("/debug/") ?? false
    }

    // MARK: Files

    /// The fields follow the name in parentheses, which can contain any character (proc(5), /proc/pid/stat).
    private static func stat(_ pid: Int) -> (parent: Int, ticks: Int)? {
        guard let text = text(of: "/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ").map { Int($0) ?? 0 }
        guard fields.count > 14 else { return nil }
        return (fields[1], fields[11] + fields[12] + fields[13] + fields[14])
    }

    private static func wakeUps(_ pid: Int) -> Int {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []
        return threads.reduce(0) { sum, thread in
            sum + numbers(of: "/proc/\(pid)/task/\(thread)/status", ["voluntary_ctxt_switches"])[0]
        }
    }

    /// The numbers for keys of a file with lines `key: number`. 0 for a missing key.
    private static func numbers(of path: String, _ keys: [String]) -> [Int] {
        let lines = text(of: path)?.split(separator: "\n") ?? []
        return keys.map { key in
            guard let line = lines.first(where: { $0.hasPrefix(key + ":") }) else { return 0 }
            return Int(line.dropFirst(key.count + 1).filter(\.isNumber)) ?? 0
        }
    }

    /// The sums of the counters in the file of a counting process (`deploy/bench/count_calls.c`): slots of 64 bytes,
    /// with two counters in each.
    private static func calls(_ path: String) -> (allocations: Int, sends: Int)? {
        guard let data = FileManager.default.contents(atPath: path), data.count >= 64 else { return nil }
        return data.withUnsafeBytes { bytes in
            func sum(from first: Int) -> Int {
                stride(from: first, to: bytes.count - 7, by: 64).reduce(0) {
                    $0 + Int(bytes.loadUnaligned(fromByteOffset: $1, as: Int64.self))
                }
            }
            return (sum(from: 0), sum(from: 8))
        }
    }

    private static func text(of path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Cumulative resource use of the processes of one name, including child processes.
package struct ProcessSample: Hashable, Sendable {
    /// Processor time, including ended children.
    package var cpuMicroseconds = 0
    /// Anonymous memory of all processes, plus the largest shared memory.
    package var residentBytes = 0
    /// Number of voluntary context switches of all threads.
    package var wakeUps = 0
    /// Calls of malloc and related functions. The value is nil if they are not counted.
    package var allocations: Int?
    /// Calls of send, write and related functions. The value is nil if they are not counted.
    package var sends: Int?
    /// AMQP message bodies. The value is nil if the process has no bus or does not export the metric.
    package var bodiesSent: Int?
    package var bodiesReceived: Int?

    package init(
        cpuMicroseconds: Int = 0, residentBytes: Int = 0, wakeUps: Int = 0, allocations: Int? = nil,
        sends: Int? = nil, bodiesSent: Int? = nil, bodiesReceived: Int? = nil
    ) {
        (self.cpuMicroseconds, self.residentBytes, self.wakeUps) = (cpuMicroseconds, residentBytes, wakeUps)
        (self.allocations, self.sends) = (allocations, sends)
        (self.bodiesSent, self.bodiesReceived) = (bodiesSent, bodiesReceived)
    }
}
