import Foundation
public import Logging

/// What an operator wants of a device's log.
public struct DiagnosisCommand: Sendable, Hashable, Codable {
    /// Which networks an upload may use.
    public enum Network: String, Sendable, Codable {
        /// Wi-Fi only.
        case wifi
        /// Any.
        case any

        /// Whether it may be used now.
        func allows(_ kind: NetworkKind) -> Bool {
            switch self {
            case .wifi: kind == .wifi
            case .any: kind != .none
            }
        }
    }

    /// What to do.
    enum Action: String, Sendable, Codable {
        /// Collect the log and upload it.
        case collect
        /// Stop, and delete what was collected.
        case delete
    }

    /// The task's id, the operator's: 1 to 64 letters, digits, `-`, `_` or dots, no dot first.
    public let taskID: String
    /// Which run of the task it is: a higher one starts it over, whatever became of those before.
    public let run: Int
    let action: Action
    /// From when on, in milliseconds since 1970.
    public let from: Int64
    /// Until when, this millisecond not included.
    public let to: Int64
    /// The lowest level that is wanted.
    public let level: Logger.Level
    /// Which networks it may use.
    public let network: Network
    /// Bytes that the upload may have.
    public let limitBytes: Int

    /// The end of the year 9999, from where on times are spelt otherwise.
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

    /// Reads the JSON that the README documents.
    ///
    /// - Throws: `PushFault` when it is something else, or exceeds a limit.
    init(_ payload: [UInt8]) throws(PushFault) {
        let form: Form
        do { form = try JSONDecoder().decode(Form.self, from: Data(payload)) } catch {
            throw PushFault("it is not the JSON of a diagnosis command: \(error)")
        }
        guard form.taskId.wholeMatch(of: /[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}/) != nil else {
            throw PushFault("a taskId has 1 to 64 letters, digits, -, _ or dots, no dot first")
        }
        taskID = form.taskId
        run = form.run ?? 1
        guard let action = Action(rawValue: form.action ?? Action.collect.rawValue) else {
            throw PushFault("an action is collect or delete")
        }
        self.action = action
        (from, to) = (form.from ?? 0, form.to ?? 0)
        guard action == .delete || (from < to && (0...Self.latest).contains(from) && to <= Self.latest) else {
            throw PushFault("it takes from and to, in milliseconds since 1970, from before to")
        }
        guard let level = Logger.Level(rawValue: (form.level ?? Logger.Level.info.rawValue).lowercased()) else {
            throw PushFault("there is no level \(form.level ?? "")")
        }
        self.level = level
        guard let network = Network(rawValue: form.network ?? Network.wifi.rawValue) else {
            throw PushFault("a network is wifi or any")
        }
        self.network = network
        limitBytes = form.limitBytes ?? ServiceLimits.bundleBytes
        guard run > 0, (1...ServiceLimits.bundleBytes).contains(limitBytes) else {
            throw PushFault("run is above 0, limitBytes 1 to \(ServiceLimits.bundleBytes)")
        }
    }
}
