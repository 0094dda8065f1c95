import Foundation
public import Logging

/// An operator's request for the log of a device.
public struct DiagnosisCommand: Sendable, Hashable, Codable {
    /// The networks that an upload can use.
    public enum Network: String, Sendable, Codable {
        /// Wi-Fi only.
        case wifi
        /// Any network.
        case any

        /// Whether this setting allows a network of the given kind.
        func allows(_ kind: NetworkKind) -> Bool {
            switch self {
            case .wifi: kind == .wifi
            case .any: kind != .none
            }
        }
    }

    /// The requested action.
    enum Action: String, Sendable, Codable {
        /// Collect the log and upload it.
        case collect
        /// Stop the task and delete the collected log.
        case delete
    }

    /// The id of the task, chosen by the operator: 1 to 64 letters, digits, `-`, `_` or dots, without a dot at the
    /// start.
    public let taskID: String
    /// The run of the task. A command with a higher run restarts the task from any state.
    public let run: Int
    let action: Action
    /// The start of the requested time, in milliseconds since 1970, inclusive.
    public let from: Int64
    /// The end of the requested time, in milliseconds since 1970, exclusive.
    public let to: Int64
    /// The lowest requested level.
    public let level: Logger.Level
    /// The networks that the upload can use.
    public let network: Network
    /// The largest size of the upload, in bytes.
    public let limitBytes: Int

    /// The end of the year 9999. The text form of later times has another length.
    private static let latest: Int64 = 253_402_300_800_000

    private struct Form: Decodable {
        let taskId: String
        let action: String?
        let run: Int?
        let from: Int64?
        let to: Int64?
        let level: String?
        let network: String?
        let limitBytes: Int?
    }

    /// Decodes the JSON format of the README (Diagnosis logs).
    ///
    /// - Throws: `PushFault` when the payload has another format or exceeds a limit.
    init(_ payload: [UInt8]) throws(PushFault) {
        let form: Form
        do { form = try JSONDecoder().decode(Form.self, from: Data(payload)) } catch {
            throw PushFault("the payload is not the JSON of a diagnosis command: \(error)")
        }
        guard form.taskId.wholeMatch(of: /[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}/) != nil else {
            throw PushFault("taskId must have 1 to 64 letters, digits, -, _ or dots, and no dot at the start")
        }
        taskID = form.taskId
        run = form.run ?? 1
        guard let action = Action(rawValue: form.action ?? Action.collect.rawValue) else {
            throw PushFault("action must be collect or delete")
        }
        self.action = action
        (from, to) = (form.from ?? 0, form.to ?? 0)
        guard action == .delete || (from < to && (0...Self.latest).contains(from) && to <= Self.latest) else {
            throw PushFault("from and to are required, in milliseconds since 1970, and from must be before to")
        }
        guard let level = Logger.Level(rawValue: (form.level ?? Logger.Level.info.rawValue).lowercased()) else {
            throw PushFault("unknown level \(form.level ?? "")")
        }
        self.level = level
        guard let network = Network(rawValue: form.network ?? Network.wifi.rawValue) else {
            throw PushFault("network must be wifi or any")
        }
        self.network = network
        limitBytes = form.limitBytes ?? ServiceLimits.bundleBytes
        guard run > 0, (1...ServiceLimits.bundleBytes).contains(limitBytes) else {
            throw PushFault("run must be above 0, and limitBytes 1 to \(ServiceLimits.bundleBytes)")
        }
    }
}
