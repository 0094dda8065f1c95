import Testing

extension ExclusiveSystem {
    /// The Java client in the cases of `mssctl conformance client`.
    @Suite("Java client, conformance", .enabled(if: JavaProgram.isBuilt))
    struct JavaConformanceTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        private func conformance(_ more: [String], program own: [String] = []) async throws -> ConformanceRun {
            try await ConformanceRun.of(
                stack,
                ["client", "--no-confirm-arguments=--no-confirm", "--json"] + more + ["--"]
                    + JavaProgram.command("ConformanceDriver") + [
                        "--host", "{host}", "--port", "{port}", "--ca", "{ca}", "--instance", "{instance}", "--device",
                        "{device}", "--user", "{user}", "--session", "{session}", "--store", "{store}",
                        "--app-version", "{app-version}",
                    ] + own)
        }

        @Test("the Java client conforms to DeviceProtocol.md") func conforms() async throws {
            // A Java program starts in half a second, so fewer cases run at once than for the Swift client.
            let report = try await conformance(["--at-once", "8"])
            #expect(report.cases.count > 110)
            #expect(report.failures == [])
        }

        @Test("SEC9: the Java client signs and keeps secrets as DeviceProtocol.md requires")
        func identity() async throws {
            let signed = try await SignedInstance.make(stack, "conformance_java")
            let (key, secretFile) = try await signed.makeKeyFile()
            let options = ["--app-key", key, "--app-secret-file", secretFile]
            let report = try await conformance(
                ["--filter", "signed/,secret/,close/5004"] + options, program: options)
            #expect(report.cases.count == 4)
            #expect(report.failures == [])
        }
    }
}
