import ArgumentParser
import Foundation
import SyncModel

extension RecordsCommand {
    /// Which records a command is about.
    struct Filter: ParsableArguments {
        @Option(help: "Only of this instance.")
        var instance: String?
        @Option(help: "Only of this actor, such as console:alice or mssctl:root.")
        var actor: String?
        @Option(help: "Only this action: \(OperationAction.allCases.map(\.word).joined(separator: ", ")).")
        var action: String?
        @Option(help: "From this moment on: 2026-11-21 or 2026-11-21T07:30:00Z.")
        var from: String?
        @Option(help: "Before this moment.")
        var to: String?

        var model: RecordFilter {
            get throws {
                RecordFilter(
                    instanceID: instance.map { InstanceID($0) }, actor: actor,
                    actionCode: try action.map { word in
                        guard let action = OperationAction(word: word) else {
                            throw ValidationError("--action: there is no action \(word); see --help")
                        }
                        return action.rawValue
                    }, from: try from.map(Self.time), to: try to.map(Self.time))
            }
        }

        /// A day stands for its beginning in UTC.
        static func time(_ text: String) throws -> WallTime {
            let moment =
                (try? Date(text, strategy: .iso8601))
                ?? (try? Date(text, strategy: .iso8601.year().month().day()))
            guard let moment, moment.timeIntervalSince1970 > 0 else {
                throw ValidationError("\(text) is no time such as 2026-11-21 or 2026-11-21T07:30:00Z")
            }
            return WallTime(milliseconds: Int64(moment.timeIntervalSince1970 * 1_000))
        }
    }
}
