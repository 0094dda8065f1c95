import ChildProcesses
import Foundation
import Glibc
import SyncModel
import TestSupport
import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("Bad tenants", .timeLimit(.minutes(5)))
struct ValidatorBadTenantTests {
    /// The expected reason of the end, where more than one reason is possible: a size limit and not the time limit, a
    /// check and not an accident.
    private static let reasons = [
        "continue-storm": "too long", "early-hints-storm": "too long", "chunk-extensions": "too long",
        "tiny-chunks": "too long", "endless-status": "too long", "endless-field": "too long", "huge-body": "too long",
        "huge-chunked": "too long", "endless-body": "too long", "tls-wrong-authority": "CERTIFICATE_VERIFY_FAILED",
        "tls-expired": "CERTIFICATE_VERIFY_FAILED", "tls-wrong-host": "failedToValidateHostname",
        "tls-1-1": "PROTOCOL_VERSION", "tls-stalled": "within the limit", "silent": "within the limit",
        "found": "status 302", "gzip": "no JSON object", "lying-sid": "another session",
        "two-answers": "not valid", "answers-ahead": "not valid",
        "decimal": "not called", "mapped": "not called", "metadata": "not called", "no-such-name": "not called",
    ]

    @Test("SEC12, V4: no malicious or broken endpoint makes a session valid, exceeds the limit or redirects us")
    func bad() async throws {
        let forbidden = try CountingListener()
        defer { forbidden.stop() }
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "bad-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let scripts = ProjectFolder.url.appending(path: "deploy/scripts")
        let environment = ProcessInfo.processInfo.environment
        _ = try await Command.run(scripts.appending(path: "certificates.sh"), [folder.path], environment: environment)
        let port = try FreePorts.find(BadTenants.ports)[0]
        let tenants = try await BadTenants(port: port, forbidden: forbidden.port)
        let process = try ChildProcess(
            BadTenants.command(port: port, forbidden: forbidden.port, tls: folder), output: .discarded,
            errors: .inherited)
        defer {
            process.signal(SIGTERM)
            process.waitUntilExit()
        }
        let endpoint = try SessionEndpoint(
            limit: .seconds(6), connectLimit: .seconds(6),
            policy: CalloutPolicy(
                allowed: tenants.allow.split(separator: ",").compactMap { AllowedCallout(String($0)) },
                allowsLoopback: true), authorityFile: folder.appending(path: "ca.pem").path)
        defer { endpoint.close() }
        for url in tenants.honest {
            try await eventually("\(url) answers", within: .seconds(30)) { await check(url, endpoint) == .valid }
        }
        #expect(tenants.bad.count >= 30)
        // Each twice, so that the second call meets data that the first one left on a connection.
        for _ in 0..<2 {
            let outcomes = await withTaskGroup(of: (String, CheckOutcome).self) { group in
                for (name, url) in tenants.bad { group.addTask { (name, await check(url, endpoint, of: name)) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for (name, outcome) in outcomes {
                #expect(outcome != .valid, "\(name)")
                guard let words = Self.reasons[name] else { continue }
                #expect("\(outcome)".contains(words), "\(name): \(outcome)")
            }
            for url in tenants.honest { #expect(await check(url, endpoint) == .valid) }
        }
        // The endpoint keeps its connection open and no longer answers, so no other call may use the connection.
        let silentAfterwards = try #require(tenants.bad["silent-afterwards"])
        #expect(await check(silentAfterwards, endpoint, of: "silent") == .invalid("the session is not valid"))
        #expect(await check(tenants.honest[0], endpoint) == .valid)
        #expect(try await forbidden.isUntouched())
    }

    private func check(
        _ url: String, _ endpoint: SessionEndpoint, of instance: String = "honest"
    ) async -> CheckOutcome {
        await endpoint.check(url, instanceID: InstanceID(instance), userID: UserID("u"), sessionID: "s1")
    }
}
