import Foundation
import Glibc

/// The processes of this machine, read once from `/proc`, by who started whom.
struct ProcessTree {
    private var children: [Int: [Int]] = [:]
    private var ticks: [Int: Int] = [:]
    private static let ticksPerSecond = sysconf(Int32(_SC_CLK_TCK))

    init() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        for pid in names.compactMap({ Int($0) }) {
            guard let fields = Self.stat(pid) else { continue }
            children[fields.parent, default: []].append(pid)
            ticks[pid] = fields.ticks
        }
    }

    /// Who was started by a process and still runs.
    func children(of pid: Int) -> [Int] { children[pid] ?? [] }

    /// What a process and all that it started have used.
    ///
    /// - Parameter allocations: the folder in which the counting library leaves its counts; nil: there is none.
    func sample(_ root: Int, allocations: String?) -> ProcessSample {
        var sample = ProcessSample()
        var (pending, shared, cpuTicks) = ([root], 0, 0)
        while let pid = pending.popLast() {
            pending += children[pid] ?? []
            cpuTicks += ticks[pid] ?? 0
            let status = Self.numbers(of: "/proc/\(pid)/status", ["RssAnon", "RssShmem"])
            sample.residentBytes += status[0] * 1_024
            shared = max(shared, status[1] * 1_024)
            sample.wakeUps += Self.wakeUps(pid)
            if let folder = allocations, let count = Self.allocations("\(folder)/\(pid)") {
                sample.allocations = (sample.allocations ?? 0) + count
            }
        }
        sample.residentBytes += shared
        sample.cpuMicroseconds = cpuTicks * 1_000_000 / Self.ticksPerSecond
        return sample
    }

    /// Whether the process runs a build without optimisation.
    static func isDebug(_ pid: Int) -> Bool {
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/exe")
        return path?.contains("/debug/") ?? false
    }

    // MARK: Files

    /// Fields after the name in parentheses, which may itself hold anything (proc(5), /proc/pid/stat).
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

    /// The numbers behind keys of a file with lines `key: number`; 0 where a key is not there.
    private static func numbers(of path: String, _ keys: [String]) -> [Int] {
        let lines = text(of: path)?.split(separator: "\n") ?? []
        return keys.map { key in
            guard let line = lines.first(where: { $0.hasPrefix(key + ":") }) else { return 0 }
            return Int(line.dropFirst(key.count + 1).filter(\.isNumber)) ?? 0
        }
    }

    /// The sum of the 64-bit counters that a counting process keeps in its file (`deploy/bench/count_allocations.c`).
    private static func allocations(_ path: String) -> Int? {
        guard let data = FileManager.default.contents(atPath: path), data.count >= 8 else { return nil }
        return data.withUnsafeBytes { bytes in
            stride(from: 0, through: bytes.count - 8, by: 8).reduce(0) {
                $0 + Int(bytes.loadUnaligned(fromByteOffset: $1, as: Int64.self))
            }
        }
    }

    private static func text(of path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
