import Foundation

/// `mssctl listen --json` as a process, and its output.
final class Listener: Sendable {
    /// One printed oplog.
    struct Line: Decodable {
        let bizType: String
        let oplogId: Int64
        let payload: String
        let thirdMsgId: String?
        let createdAt: Int64
    }

    private let output: URL
    private let process: Supervised

    init(_ stack: Stack, user: String, device: String) throws {
        output = stack.folder.appending(path: "listen-\(device).out")
        process = Supervised(
            name: "listen-\(device)", executable: URL(fileURLWithPath: "/bin/sh"),
            arguments: [
                "-c", #"exec "$0" "$@" 2> /dev/null"#, StackPlan.binaries.appending(path: "mssctl").path, "listen",
                "--instance", Stack.instance, "--user", user, "--device", device, "--session", "s1", "--port",
                "\(stack.gateways[0])", "--ca", stack.certificateAuthority, "--store",
                stack.folder.appending(path: "\(device).sqlite").path, "--json",
            ], environment: ["PATH": "/usr/bin:/bin"], log: output)
        try process.start()
    }

    /// Lines of one Sync ID, because global pushes of other tests reach every device.
    func lines(_ bizType: String) -> [String] {
        ((try? String(contentsOf: output, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
            .filter { $0.contains("\"bizType\":\"\(bizType)\"") }
    }

    /// Ids of one Sync ID, in the order in which the app received them.
    func ids(_ bizType: String) -> [Int64] {
        lines(bizType).compactMap { try? JSONDecoder().decode(Line.self, from: Data($0.utf8)).oplogId }
    }

    /// Kills the device's process with SIGKILL; it is started again.
    func kill() { process.kill() }

    /// The number of starts of the process.
    var starts: Int { process.starts }

    func stop() { process.stop() }
}
