import ArgumentParser
import Foundation
import Logging
import MobileSync
import ToolSupport
import UnixSignals

/// `mssctl listen`: a device in a terminal. It prints every oplog and then confirms it.
struct ListenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "listen",
        abstract: "Connects as a device, prints every received oplog and confirms it.",
        discussion: "Prints oplogs to standard output, one line each, and status to standard error.")

    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The device id.")
    var device: String
    @Option(help: "The user to bind; only data for the device when absent.")
    var user: String?
    @Option(help: "Session id of the user.")
    var session = "SESSION_DEMO"
    @Option(help: "Address of the gateway.")
    var host = "127.0.0.1"
    @Option(help: "Port of the gateway.")
    var port = 7443
    @Option(help: "PEM file with the authority of the gateway's certificate.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "Local store; .local/devices/<instance>/<device>/store.sqlite when absent.")
    var store: String?
    @Flag(help: "Delete the local store first, as a new installation does.")
    var fresh = false
    @Flag(help: "Print one JSON object per oplog.")
    var json = false
    @Flag(help: "Do not confirm oplogs, so that they are resent.")
    var noConfirm = false
    @Option(help: "Exit after this many oplogs.")
    var count: Int?
    @Option(help: "Name of the operating system.")
    var os = "iOS"
    @Option(help: "Version of the app.")
    var appVersion = "1.0.0"
    @OptionGroup var appKey: AppKeyOptions

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be 1 or more.") }
        guard (1...65_535).contains(port) else { throw ValidationError("--port must be 1 to 65535.") }
    }

    func run() async throws {
        let client = try makeClient()
        if let user { try client.bind(userID: user, sessionID: session) }
        let events = client.events
        let signals = await UnixSignalsSequence(trapping: [.sigint, .sigterm])
        let (line, count, confirms) = (OplogLine(isJSON: json), count, !noConfirm)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            group.addTask { for await _ in signals { return } }
            group.addTask { try await Self.printOplogs(of: client, as: line, count: count, confirms: confirms) }
            group.addTask {
                for await event in events { Self.printStatus(of: event) }
                try await Task.sleep(for: .seconds(86_400 * 365))
            }
            // The first task to end stops the others: a signal, the count or an error.
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func makeClient() throws -> SyncClient {
        guard FileManager.default.isReadableFile(atPath: ca) else {
            throw ValidationError("The CA file \(ca) is missing: run deploy/up, or name the file with --ca.")
        }
        let path = store ?? Self.defaultStore(instance: instance, device: device)
        let folder = URL(filePath: path).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if fresh {
            for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: path + suffix) {
                try FileManager.default.removeItem(atPath: path + suffix)
            }
        }
        let configuration = SyncClientConfiguration(
            host: host, port: port, instanceID: instance, deviceID: device, storePath: path,
            trust: .certificateAuthority(file: ca), operatingSystemName: os, appVersion: appVersion,
            appKey: try appKey.key())
        let client = try SyncClient(configuration: configuration, logger: ToolSettings.logger())
        if client.replacedDamagedStore {
            FileHandle.standardError.write(
                Data("the local store was damaged: a new one was created, the old one is next to it\n".utf8))
        }
        return client
    }

    /// Path of the local store below the current folder. Ids are escaped, so that none can name another folder.
    static func defaultStore(instance: String, device: String) -> String {
        ".local/devices/\(fileName(instance))/\(fileName(device))/store.sqlite"
    }

    /// An id as a file name: every byte except ASCII letters, digits, `-` and `_` (and `.` after the first byte) as
    /// `%XX`.
    static func fileName(_ id: String) -> String {
        var name = ""
        for (index, byte) in id.utf8.enumerated() {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: ".") where index > 0:
                name.append(".")
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                name += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return name
    }

    private static func printOplogs(
        of client: SyncClient, as line: OplogLine, count: Int?, confirms: Bool
    ) async throws {
        var left = count
        for try await oplog in client.allOplogs() {
            // Unbuffered, and before the confirmation, so that a reader of a pipe has the line by then.
            try FileHandle.standardOutput.write(contentsOf: Data(line.text(of: oplog).utf8))
            if confirms { try await client.confirm(oplog) }
            guard let rest = left.map({ $0 - 1 }) else { continue }
            if rest == 0 { return }
            left = rest
        }
    }

    private static func printStatus(of event: SyncEvent) {
        let text =
            switch event {
            case .status(.connected): "connected"
            case .status(.connecting): "connecting"
            case .status(.connectFailed): "could not connect; retrying"
            case .status: "not connected"
            case .bound(let userID): "user \(userID) bound"
            case .bindRefused(let userID, let reason): "user \(userID) refused: \(reason)"
            case .caughtUp: "caught up"
            case .storeFull: "the local store is full"
            case .sessionInvalid(let userID, let reason): "the session of \(userID) is invalid: \(reason)"
            case .storeRolledBack: "the local store is a restored copy; missing oplogs are sent again"
            case .parameterRefused(let reason): "a parameter was refused: \(reason)"
            case .registeredAnew(let deviceID): "the device id belongs to another device; connecting as \(deviceID)"
            case .closed(let code, let reason): "closed by the gateway (\(code)): \(reason)"
            case .certificateRefused(let error): "\(error)"
            case .connectionLost(let reason): "connection lost: \(reason)"
            }
        try? FileHandle.standardError.write(contentsOf: Data("\(text)\n".utf8))
    }
}
