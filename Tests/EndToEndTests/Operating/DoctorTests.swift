import AMQP
import Foundation
import TestSupport
import Testing

extension SecondRunningSystem {
    @Suite("mssctl doctor")
    struct DoctorTests {
        private let stack: Stack

        init() throws { stack = try Stack.running }

        private var testPush: [String] {
            [
                "--instance", Stack.instance, "--api", "http://127.0.0.1:\(stack.apis[0])", "--port",
                "\(stack.gateways[1])", "--ca", stack.certificateAuthority,
            ]
        }

        @Test("it finds no problem: each process, queue and clock, the database, and a push to a user and to a device")
        func isWell() async throws {
            let toUser = try await stack.tool(["doctor"] + testPush + ["--biz-type", "UCHAT", "--user", "doctor-u"])
            #expect(toUser.status == 0, "\(toUser.output)")
            for text in [
                "ok       broker",
                "2 mss-ingest, 2 mss-oplog-writer, 2 mss-gateway, 1 mss-session-validator, 2 mss-relay",
                "ok       versions", "ok       clocks", "ok       control", "ok       certificates",
                "ok       database",
                "ok       test push     stored after",
            ] { #expect(toUser.output.contains(text), "\(text) in \(toUser.output)") }
            #expect(!toUser.output.contains("problem"))
            let toDevice = try await stack.tool(["doctor"] + testPush + ["--biz-type", "DEVICE-LOCK"])
            #expect(toDevice.status == 0 && toDevice.output.contains("ok       test push"), "\(toDevice.output)")
        }

        @Test("it reports, with advice, a session without a valid verdict and an unreachable gateway")
        func problems() async throws {
            let session = stack.folder.appending(path: "bad-session")
            try "bad-doctor\n".write(to: session, atomically: true, encoding: .utf8)
            let checked =
                testPush + ["--biz-type", "TRADE-SECURE", "--user", "doctor-u", "--session-file", session.path]
            let invalid = try await stack.tool(["doctor"] + checked)
            #expect(invalid.status == 1 && invalid.output.contains("problem  test push"), "\(invalid.output)")
            #expect(invalid.output.contains("refuses user doctor-u"))
            let away = try await stack.tool(["doctor"] + testPush + ["--biz-type", "UCHAT", "--port", "1"])
            #expect(away.status == 1 && away.output.contains("127.0.0.1:1 cannot be reached"), "\(away.output)")
            #expect(away.output.contains("→ name it with --host and --port"))
        }

        @Test("SEC16: the support bundle contains all diagnostic data, and no secret")
        func bundle() async throws {
            let file = stack.folder.appending(path: "bundle.tar.gz")
            let made = try await stack.tool(["support-bundle", "--output", file.path, "--logs", stack.folder.path])
            #expect(made.status == 0, "\(made.output)")
            let list = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/tar"), ["-tzf", file.path], environment: ["PATH": "/usr/bin:/bin"])
            let names = list.output.split(separator: "\n").compactMap { $0.split(separator: "/").last.map(String.init) }
            let expected = [
                "doctor.txt", "processes.json", "queues.json", "configurations.json", "database.json",
                "log-writer-0.log", "log-postgres.log",
            ]
            #expect(Set(expected).isSubset(of: names), "\(names)")
            let all = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/tar"), ["-xzOf", file.path], environment: ["PATH": "/usr/bin:/bin"])
            for text in ["ok       processes", "mss_control_version", "\"mss.append\"", "\"UCHAT\"", "m0001"] {
                #expect(all.output.contains(text), "\(text)")
            }
            for tier in ["tool", "writer", "gateway", "ingest"] {
                #expect(!all.output.contains(try stack.broker(as: tier).password), "\(tier)")
            }
            let again = try await stack.tool(["support-bundle", "--output", file.path])
            #expect(again.status != 0 && again.output.contains("exists already"))
        }
    }
}
