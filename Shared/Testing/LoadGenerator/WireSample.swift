import ChildProcesses
import Foundation

/// Cumulative bytes of every connection to the stack's servers, as the kernel counts them: TCP payload including TLS,
/// without headers.
struct WireSample: Hashable, Sendable {
    /// The server's end of one connection.
    struct Socket: Hashable, Sendable {
        let wire: String
        let peer: String
    }

    /// Bytes to and from a server.
    struct Bytes: Hashable, Sendable, Codable {
        var toServer = 0
        var fromServer = 0
    }

    private(set) var sockets: [Socket: Bytes] = [:]

    /// - Parameters:
    /// - text: output of `ss -tinHO`.
    /// - wires: names by listening port.
    init(_ text: String, wires: [Int: String]) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            // State, two queues, local address, peer address, then the connection's details.
            guard words.count > 5, words[0] == "ESTAB", let port = words[3].split(separator: ":").last,
                let wire = Int(port).flatMap({ wires[$0] })
            else { continue }
            func number(_ name: String) -> Int {
                words.first { $0.hasPrefix(name) }.flatMap { Int($0.dropFirst(name.count)) } ?? 0
            }
            sockets[Socket(wire: wire, peer: String(words[4]))] = Bytes(
                toServer: number("bytes_received:"), fromServer: number("bytes_acked:"))
        }
    }

    /// Reads the current counters. Returns nil if `ss` is not installed.
    static func measure(_ wires: [Int: String]) async -> WireSample? {
        let folder = FileManager.default.temporaryDirectory
        let text = try? await ChildProcess.output(of: ["ss", "-tinHO"], in: folder)
        return text.map { WireSample($0, wires: wires) }
    }

    /// Bytes by name since an earlier sample, over the connections that are still open.
    func since(_ earlier: WireSample) -> [String: Bytes] {
        sockets.reduce(into: [:]) { sums, socket in
            let before = earlier.sockets[socket.key] ?? Bytes()
            sums[socket.key.wire, default: Bytes()].toServer += socket.value.toServer - before.toServer
            sums[socket.key.wire, default: Bytes()].fromServer += socket.value.fromServer - before.fromServer
        }
    }
}
