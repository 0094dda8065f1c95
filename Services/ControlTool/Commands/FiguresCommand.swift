import ArgumentParser
import Foundation
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore
import ToolSupport

/// `mssctl figures`: the figures of the console's overview and data query (C1, C7, C11).
struct FiguresCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "figures", abstract: "Pushes and arrivals of an instance, a user or a device.",
        discussion: ConsoleCommand.postgresHint, subcommands: [Overview.self, DataQuery.self])

    private static let limit = Duration.seconds(10)

    struct Overview: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "The figures of an instance, one per line.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "Length of the period until now, 1 to 720 hours.")
        var hours = 1

        func validate() throws {
            guard (1...720).contains(hours) else { throw ValidationError("--hours must be 1 to 720.") }
        }

        func run() async throws {
            let connection = try ToolSettings.database()
            defer { connection.close() }
            let id = InstanceID(instance)
            let now = WallTime.now
            // Whole minutes, including the current one.
            let end = (now.milliseconds / 60_000 + 1) * 60_000
            let length = Duration.seconds(hours * 3_600)
            let (from, to) = (WallTime(milliseconds: end - length.wholeMilliseconds), WallTime(milliseconds: end))
            var times = ArrivalTimes()
            var pushes: Int64 = 0
            for step in try connection.run(FigureStore.minutes(of: id, from: from, to: to, step: length), within: limit)
            {
                pushes += step.pushes
                times += step.arrivals
            }
            let minute = Duration.seconds(60)
            let lately = WallTime(milliseconds: end - 5 * 60_000)
            let connected = try connection.run(
                FigureStore.connected(of: id, from: lately, to: to, step: minute), within: limit)
            let monthAgo = WallTime(milliseconds: now.milliseconds - 29 * 86_400_000)
            let days = try connection.run(FigureStore.days(of: id, from: monthAgo, to: now), within: limit)
            let folded = try connection.run(FigureStore.foldedUntil, within: limit)
            print("pushes\t\(pushes)")
            print("arrivals\t\(times.total)")
            print("accept to arrival, median\t\(Self.text(times.milliseconds(at: 0.5)))")
            print("accept to arrival, p99\t\(Self.text(times.milliseconds(at: 0.99)))")
            print("not arrived, of 30 days\t\(days.reduce(0) { $0 + $1.pushes - $1.arrivals })")
            print("dead letters\t\(try connection.run(FigureStore.deadLetters(of: id), within: limit))")
            print("connected when the minute began\t\(connected.last.map { "\($0.devices)" } ?? "not known")")
            print("figures until\t\(folded?.text ?? "none yet")")
        }

        private static func text(_ milliseconds: Double?) -> String {
            milliseconds.map { "\(Int($0.rounded())) ms" } ?? "none arrived"
        }
    }

    struct DataQuery: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "query", abstract: "The pushes of a user or a device in the last 30 days, the newest first.")
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "A user id.")
        var user: String?
        @Option(help: "A device id.")
        var device: String?
        @Option(help: "Only lines before this cursor; name the first column of the last line for the next page.")
        var before: String?
        @Option(help: "Most lines, 1 to 200.")
        var limit = 50

        func validate() throws {
            guard (user == nil) != (device == nil) else { throw ValidationError("Name one of --user and --device.") }
            guard (1...FigureStore.pageMax).contains(limit) else { throw ValidationError("--limit must be 1 to 200.") }
            guard before == nil || cursor != nil else {
                throw ValidationError("--before must be the first column of a line.")
            }
        }

        private var cursor: PushCursor? { before.flatMap(PushCursor.init) }

        func run() async throws {
            let connection = try ToolSettings.database()
            defer { connection.close() }
            let target = TargetAddress(
                instanceID: InstanceID(instance), kind: user == nil ? .device : .user, target: user ?? device ?? "")
            let figures = try connection.run(FigureStore.figures(of: target), within: FiguresCommand.limit)
            print("pushes\t\(figures.pushes)\narrivals\t\(figures.arrivals)")
            let query = FigureStore.pushes(of: target, before: cursor, limit: limit)
            for push in try connection.run(query, within: FiguresCommand.limit) {
                let arrived = push.arrivedAt.map { "arrived \($0.text)" } ?? "not arrived"
                let first = push.firstHandedOutAt.map { "first pushed \($0.text)" } ?? "not pushed"
                print(
                    "\(push.cursor.text)\t\(push.bizType.text)\t\(push.oplogID.value)\t\(push.kind.scope)\t\(first)\t\(arrived)"
                )
            }
        }
    }
}
