import ClientServices
import DeviceProtocol
import Foundation
import Logging
import NIOHTTP1
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

extension SteadySystem {
    /// Diagnosis logs, from the console's command to the downloaded file.
    @Suite("Diagnosis logs")
    struct DiagnosisTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        /// Creates an instance without an endpoint for operations. Returns the path of its tasks.
        private func instance(_ name: String) async throws -> String {
            let outcome = try await stack.tool(["instance", "create", name])
            guard outcome.status == 0 else { throw Failure(outcome.output) }
            return "/instances/\(name)/diagnosis"
        }

        private func order(_ device: String, _ more: [String: Any] = [:]) -> [String: Any] {
            let now = Int64(Date().timeIntervalSince1970 * 1_000)
            let order: [String: Any] = [
                "deviceId": device, "from": now - 3_600_000, "to": now + 3_600_000, "description": "it hangs",
                "limitBytes": 2_000_000,
            ]
            return order.merging(more) { $1 }
        }

        private func member(_ name: String, of task: String, _ visitor: ConsoleVisitor) async throws -> String? {
            try await visitor.call(.GET, task).members[name] as? String
        }

        /// Passes a number of frames with operations on a connection, then breaks it. A later connection passes more.
        private final class Breaks: Sendable {
            private let count = Mutex(0)
            var connections: Int { count.withLock { $0 } }

            func next() -> FrameProxy.Fault {
                let allowed = count.withLock { count in
                    count += 1
                    return count < 4 ? 2 : Int.max
                }
                let left = Mutex(allowed)
                return FrameProxy.Fault(toGateway: { packet in
                    guard case .submitOperations? = packet.body else { return [packet] }
                    // The part itself is lost, and so is everything after it.
                    return left.withLock { left in
                        left -= 1
                        return left >= 0 ? [packet] : []
                    }
                })
            }
        }

        @Test("SVC6: a log arrives in parts over lost frames, on Wi-Fi only, and the console returns the same bytes")
        func course() async throws {
            let path = try await instance("diagnosis_app")
            let visitor = try await ConsoleVisitor(stack, name: "diana")
            let breaks = Breaks()
            let proxy = try await FrameProxy.start(stack, before: stack.gateways[0]) { breaks.next() }
            let app = try DiagnosisApp(stack, device: "dg1", instance: "diagnosis_app", port: proxy.port)
            for number in 0..<4_000 {
                app.log.append(
                    level: .info, label: "app", message: "line \(number) " + String(repeating: "x", count: 90))
            }
            let made = try await visitor.call(.POST, path, order("dg1"))
            #expect(made.status == 201, "\(made.members)")
            let taskID = try requireValue(made.members["taskId"] as? String, "a task")
            let task = "\(path)/\(taskID)"
            #expect(try await visitor.call(.GET, "\(task)/log").status == 404, "there is none yet")
            app.uploads.networkChanged(to: .cellular)
            try await app.running {
                try await eventually("the device has collected, and waits for Wi-Fi", within: .seconds(20)) {
                    if case .waitingForNetwork(taken: 0, _)? = app.status(of: taskID) { true } else { false }
                }
                #expect(try await member("state", of: task, visitor) == "asked")
                app.uploads.networkChanged(to: .wifi)
                try await eventually("some parts are there", within: .seconds(30)) {
                    try await member("state", of: task, visitor) == "coming"
                }
                try await eventually("the whole log is there", within: .seconds(180)) {
                    try await member("state", of: task, visitor) == "whole" && app.status(of: taskID) == .done
                }
            }
            await proxy.stop()
            #expect(breaks.connections >= 3, "the connection was broken")
            let log = try await visitor.call(.GET, "\(task)/log")
            #expect(log.status == 200 && log.headers.first(name: "Repr-Digest")?.hasPrefix("sha-256=:") == true)
            #expect(log.headers.first(name: "Content-Disposition") == "attachment; filename=\"\(taskID)-1.log\"")
            #expect(log.body == Array(try Self.collected(by: app)), "the same bytes")
            let records = try await stack.tool(["records", "list", "--instance", "diagnosis_app"])
            for action in ["create-diagnosis", "download-diagnosis"] {
                #expect(records.output.contains(action), "\(records.output)")
            }
        }

        /// The lines of the device's log files, in order; the files are of one hour and one level.
        private static func collected(by app: DiagnosisApp) throws -> Data {
            let names = try FileManager.default.contentsOfDirectory(atPath: app.logFolder.path).sorted()
            return try names.reduce(into: Data()) { log, name in
                log.append(try Data(contentsOf: app.logFolder.appending(path: name)))
            }
        }

        @Test("SVC6: a refusal is shown; a restart requests the log again; a deleted task is deleted on the device too")
        func refusal() async throws {
            let path = try await instance("refusal_app")
            let visitor = try await ConsoleVisitor(stack, name: "rita")
            let app = try DiagnosisApp(stack, device: "dg2", instance: "refusal_app", port: stack.gateways[0])
            app.uploads.networkChanged(to: .wifi)
            let made = try await visitor.call(.POST, path, order("dg2", ["network": "any"]))
            let taskID = try requireValue(made.members["taskId"] as? String, "a task: \(made.members)")
            let task = "\(path)/\(taskID)"
            try await app.running {
                try await eventually("nothing was logged", within: .seconds(30)) {
                    try await member("refusal", of: task, visitor) == "nothing-there"
                }
                app.log.append(level: .error, label: "app", message: "now there is something")
                let restarted = try await visitor.call(.POST, "\(task)/restart")
                #expect(restarted.status == 200 && restarted.members["run"] as? Int == 2)
                try await eventually("the log is there", within: .seconds(30)) {
                    try await member("state", of: task, visitor) == "whole"
                }
                #expect(try await member("file", of: task, visitor) == "\(taskID)-2.log")
                #expect(try await visitor.call(.DELETE, task).status == 200)
                try await eventually("the device has deleted it", within: .seconds(30)) {
                    app.status(of: taskID) == .deleted
                }
            }
            #expect(try await visitor.call(.GET, task).status == 404)
            let wrong: [([String: Any], String)] = [
                (["deviceId": " "], "deviceId"), (["to": 0], "to"), (["level": "loud"], "level"),
                (["network": "5g"], "network"), (["limitBytes": 20_000_001], "limitBytes"),
                (["description": String(repeating: "x", count: 201)], "description"),
            ]
            for (change, field) in wrong {
                let answer = try await visitor.call(.POST, path, order("dg2", change))
                #expect(answer.status == 422 && answer.members["field"] as? String == field, "\(answer.members)")
            }
        }
    }
}
