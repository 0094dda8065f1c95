import ArgumentParser
import Foundation
import ToolSupport

/// One of the two systems that a comparison loads in turn: its addresses and its processes.
struct ComparedSide: Sendable, Codable {
    /// For people.
    let name: String
    /// Addresses, host:port.
    let api: String
    let gateway: String
    /// File with the certificate authority of the gateway.
    let ca: String
    /// Folder of the local stack that supervises the processes.
    let stack: String
    /// Names of the processes whose use of the processors counts, with all that they started.
    let processes: [String]
    /// The side's database. Processes of PostgreSQL that serve another database do not count.
    let database: String

    /// Reads the description of a side.
    static func read(file: String) throws -> ComparedSide {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("no description of a side at \(file)")
        }
        do {
            return try JSONDecoder().decode(ComparedSide.self, from: data)
        } catch {
            throw ValidationError("\(file) is not the description of a side: \(error)")
        }
    }

    /// The target of the load.
    func target() throws -> LoadTarget {
        try LoadTarget.parse(["--api", api, "--gateway", gateway, "--ca", ca])
    }

    /// Ids of the running processes that count, by name.
    ///
    /// - Throws: `ValidationError` if one of them does not run.
    func running() throws -> [String: [Int]] {
        let (tree, supervised) = (ProcessTree(), StackProbe.pids(stack))
        return try processes.reduce(into: [:]) { running, name in
            guard let root = supervised[name] else {
                throw ValidationError("\(self.name): the process \(name) does not run")
            }
            running[name] = tree.family(of: root).filter { pid in
                guard let data = FileManager.default.contents(atPath: "/proc/\(pid)/cmdline"),
                    let served = Self.database(inTitle: String(decoding: data, as: UTF8.self))
                else { return true }
                return served == database
            }
        }
    }

    /// The database that a process of PostgreSQL serves, by its title. The value is nil for other processes.
    ///
    /// Titles: `postgres: USER DATABASE HOST(PORT) COMMAND` and `postgres: autovacuum worker DATABASE`.
    static func database(inTitle title: String) -> String? {
        let words = title.split { $0 == " " || $0 == "\0" }
        guard words.count > 3, words[0] == "postgres:" else { return nil }
        if words[1] == "autovacuum", words[2] == "worker" { return String(words[3]) }
        return words[3].hasSuffix(")") || words[3] == "[local]" ? String(words[2]) : nil
    }
}
