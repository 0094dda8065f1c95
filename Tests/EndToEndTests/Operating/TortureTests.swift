import Foundation
import TestSupport
import Testing

extension ExclusiveSystem {
    @Suite("mssctl torture")
    struct TortureTests {
        private static let root = ProjectFolder.url

        private func torture(_ arguments: [String]) async throws -> (status: Int32, output: String) {
            let stack = try Stack.running
            let environment = [
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "", "HOME": stack.folder.path, "LANG": "C.UTF-8",
            ]
            return try await Command.run(
                URL(fileURLWithPath: "/bin/sh"),
                ["-c", #"cd "$0" && exec "$@""#, Self.root.path, StackPlan.binaries.appending(path: "mssctl").path]
                    + ["torture"] + arguments, environment: environment)
        }

        /// The load leaves processors idle. With twice as much, the harness and the debug build need both processors of
        /// a fast machine, and on a slower one devices catch up too late.
        @Test("a minute of faults breaks no promise, and the report lists the faults")
        func minute() async throws {
            let folder = try Stack.running.folder.appending(path: "torture")
            let (status, output) = try await torture([
                "--minutes", "1", "--rounds", "6", "--seed", "41", "--devices", "40", "--rate", "20",
                "--operations", "10", "--java", try JavaProgram.commandFile, "--output", folder.path,
            ])
            #expect(status == 0, "\(output)")
            let report = try String(contentsOf: folder.appending(path: "report.md"), encoding: .utf8)
            #expect(report.contains("no guarantee was violated"))
            func number(_ row: String) -> Int {
                let line = report.split(separator: "\n").first { $0.hasPrefix("| \(row) |") }
                return line.flatMap { Int($0.split(separator: "|")[1].filter(\.isNumber)) } ?? 0
            }
            #expect(number("pushes answered with success") > 500)
            #expect(number("device operations, each executed once and in order, each with its result") > 300)
            #expect(number("faults injected") > 5)
            #expect(number("apps died") > 0 && number("connections of misbehaving devices") > 0)
            #expect(number("Java apps killed") > 0 && number("hand-outs to Java apps") > 0)
            #expect(
                number("connections of devices with made-up sessions") > 0 && number("connections of MQTT devices") > 0)
            #expect(number("single-device hand-outs") > 0 && number("tombstones given to apps") > 0)
            #expect(number("responses compared with the open sessions of devices") > 0)
        }

        @Test("it lists its kinds of faults, and refuses unknown ones")
        func kinds() async throws {
            let (_, list) = try await torture(["--list"])
            #expect(list.split(separator: "\n").count >= 25 && list.contains("kill writer"))
            #expect(list.contains("relation lock over a week change") && list.contains("synchronous standby away"))
            let (status, output) = try await torture(["--only", "earthquake"])
            #expect(status == 64 && output.contains("no kind of fault matches"))
            let (noJava, help) = try await torture(["--java", "/nonexistent"])
            #expect(noJava == 64 && help.contains("Tests/JavaTests/run.sh"))
        }
    }
}
