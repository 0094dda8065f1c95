import Foundation
import PostgreSQL
import TestSupport
import Testing

@Suite("PostgreSQL driver over TLS", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct PostgresSecurityTests {
    /// The reason why a statement fails on a new connection; nil when it succeeds.
    private func refusal(
        _ server: SecureServer, host: String = "localhost", _ security: PostgresSecurity?
    ) async -> String? {
        let database = TestDatabase(
            PostgresConfiguration(
                host: host, port: server.port, database: "postgres", user: "mss", password: SecureServer.password,
                security: security))
        let error = await TestSupport.refusal { try await database.rows("SELECT 'x'", columns: 1) }
        await database.close()
        return error?.message
    }

    @Test("SEC1: the database over TLS refuses plaintext and TLS 1.1, and is accepted only as verify-full requires")
    func verifies() async throws {
        try await SecureServer.with(.postgres) { server in
            let security = PostgresSecurity(authorityFile: server.certificates.authorityFile)
            #expect(await refusal(server, security) == nil)
            #expect(await refusal(server, host: "127.0.0.1", security) == nil)
            #expect(await refusal(server, nil)?.contains("no encryption") == true)
            let foreign = PostgresSecurity(authorityFile: server.certificates.otherAuthorityFile)
            #expect(await refusal(server, foreign)?.contains("certificate verify failed") == true)
            let arguments = ["-starttls", "postgres"] + OpenSSLProcess.onlyTLS11
            try await OpenSSLProcess.withClient(server.port, arguments) { client in
                try await eventually("the server refuses TLS 1.1", within: .seconds(5)) { client.hasEnded }
                #expect(client.output.contains("alert protocol version"))
            }
            // A renewed certificate needs no restart; each wrong one is refused.
            let wrong: [(TestCertificates.Name, String)] = [
                (.misnamed, "does not match host name"), (.expired, "certificate verify failed"),
                (.foreign, "certificate verify failed"),
            ]
            for (name, words) in wrong {
                try await server.show(name)
                try await eventually("\(name) is refused", within: .seconds(5)) {
                    await refusal(server, security)?.contains(words) == true
                }
                try await server.show(.renewed)
                try await eventually("the right one is accepted", within: .seconds(5)) {
                    await refusal(server, security) == nil
                }
            }
            try server.append(
                """
                ssl_min_protocol_version = 'TLSv1.1'
                ssl_max_protocol_version = 'TLSv1.1'
                ssl_ciphers = 'DEFAULT@SECLEVEL=0'
                """, to: "data/postgresql.conf")
            try await server.show(.server)
            try await eventually("a server of TLS 1.1 is refused", within: .seconds(5)) {
                await refusal(server, security)?.contains("SSL error") == true
            }
            try await OpenSSLProcess.withClient(server.port, arguments + ["-state"]) { client in
                try await eventually("the counterpart speaks TLS 1.1", within: .seconds(5)) {
                    client.output.contains("TLS read finished")
                }
            }
        }
    }

    /// Configures the server to require a client certificate.
    private func asksCallers(_ server: SecureServer) throws {
        let file = server.folder.appending(path: "data/pg_hba.conf")
        let text = try String(contentsOf: file, encoding: .utf8)
        let asking = text.replacing("scram-sha-256", with: "scram-sha-256 clientcert=verify-ca")
            .replacing("local ", with: "#local ")
        try Data(asking.utf8).write(to: file)
        try server.append(
            "ssl_ca_file = '\(server.certificates.authorityFile)'", to: "data/postgresql.conf")
    }

    @Test("SEC1: a database that requires a client certificate accepts only its authority's")
    func mutual() async throws {
        try await SecureServer.with(.postgres, configure: asksCallers) { server in
            let certificates = server.certificates
            func security(_ name: TestCertificates.Name) -> PostgresSecurity {
                PostgresSecurity(
                    authorityFile: certificates.authorityFile, certificateFile: certificates.certificateFile(name),
                    privateKeyFile: certificates.privateKeyFile(name))
            }
            let none = PostgresSecurity(authorityFile: certificates.authorityFile)
            #expect(await refusal(server, none)?.contains("client certificate") == true)
            #expect(await refusal(server, security(.foreignClient)) != nil)
            #expect(await refusal(server, security(.client)) == nil)
            try certificates.install(.client, over: .foreignClient)
            #expect(await refusal(server, security(.foreignClient)) == nil, "read at each connect")
        }
    }

    @Test("a process that exits while its threads connect over TLS ends with its own exit status")
    func exits() async throws {
        try await SecureServer.with(.postgres) { server in
            // A thread must be inside OpenSSL or Kerberos at that time: each exit has a chance of that.
            for _ in 0..<16 {
                let (port, authorityFile) = (server.port, server.certificates.authorityFile)
                await #expect(processExitsWith: .exitCode(7)) { [port = port as Int, file = authorityFile as String] in
                    let configuration = PostgresConfiguration(
                        host: "localhost", port: port, database: "postgres", user: "mss",
                        password: SecureServer.password, security: PostgresSecurity(authorityFile: file))
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<8 {
                            group.addTask {
                                for _ in 0..<8 {
                                    let database = TestDatabase(configuration)
                                    _ = try? await database.rows("SELECT 'x'", columns: 1)
                                    await database.close()
                                }
                                exit(7)
                            }
                        }
                    }
                }
            }
        }
    }

    @Test("SEC1: a database without TLS is refused when TLS is required")
    func plainServer() async throws {
        try await TestCertificates.with { certificates in
            let database = TestDatabase(
                PostgresConfiguration(
                    host: "127.0.0.1", port: try requireValue(TestDatabase.port, "no port"), database: "postgres",
                    user: "mss", security: PostgresSecurity(authorityFile: certificates.authorityFile)))
            let error = await TestSupport.refusal { try await database.rows("SELECT 'x'", columns: 1) }
            #expect(error?.message.contains("server does not support SSL") == true)
            await database.close()
        }
    }
}
