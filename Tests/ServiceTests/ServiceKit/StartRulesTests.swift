import AMQP
import ConnectionThread
import Foundation
import Testing

@testable import IngestAPI
@testable import ServiceKit

@Suite("Settings with which no process starts")
struct StartRulesTests {
    /// Settings that are valid outside development.
    private static let good = [
        "MSS_HEALTH_PORT": "1", "MSS_AMQP_USER": "writer", "MSS_AMQP_PASSWORD": "5d41402abc4b2a76",
        "MSS_POSTGRES_USER": "owner", "MSS_POSTGRES_PASSWORD": "7d793037a0760186",
    ]
    private static let keys = ProcessSettings.keys + PostgresSettings.keys + IngestSettings.keys

    /// The settings that the process reports as problems. Each report must also say the remedy.
    private func named(_ changes: [String: String?]) throws -> [String] {
        var environment = Self.good
        for (name, value) in changes { environment[name] = value }
        let settings = try Settings(Self.keys, environment: environment)
        do throws(Settings.Problems) {
            try StartRules.check(settings, own: IngestSettings.problems(settings))
            return []
        } catch {
            for line in error.lines { #expect(line.contains(": ") && line.count > 60, "\(line)") }
            return error.lines.map { String($0.prefix { $0 != ":" }) }
        }
    }

    @Test("SEC16: outside development built-in users, guessable and empty passwords are refused, each by name")
    func credentials() throws {
        #expect(try named([:]) == [])
        #expect(try named(["MSS_AMQP_USER": "guest"]) == ["MSS_AMQP_USER"])
        for password in [nil, "guest", "writer"] {
            #expect(try named(["MSS_AMQP_PASSWORD": password]) == ["MSS_AMQP_PASSWORD"])
        }
        #expect(try named(["MSS_POSTGRES_PASSWORD": nil]) == ["MSS_POSTGRES_PASSWORD"])
        let all = ["MSS_AMQP_USER": "guest", "MSS_AMQP_PASSWORD": "guest", "MSS_POSTGRES_PASSWORD": nil]
        #expect(try named(all) == ["MSS_AMQP_USER", "MSS_AMQP_PASSWORD", "MSS_POSTGRES_PASSWORD"])
        #expect(try named(all.merging(["MSS_ENVIRONMENT": "development"]) { $1 }) == [])
    }

    @Test("SEC1: outside development nothing goes to another machine in the clear")
    func clear() throws {
        for host in ["db.example", "10.0.0.1", "::2", "128.0.0.1", "localhost.example"] {
            #expect(try named(["MSS_POSTGRES_HOST": host]) == ["MSS_POSTGRES_TLS"])
            #expect(try named(["MSS_AMQP_HOST": host]) == ["MSS_AMQP_TLS"])
            #expect(try named(["MSS_AMQP_HOST": host, "MSS_ENVIRONMENT": "development"]) == [])
        }
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1"] {
            #expect(try named(["MSS_POSTGRES_HOST": host, "MSS_AMQP_HOST": host]) == [])
        }
        #expect(try named(["MSS_POSTGRES_HOST": "/run/postgresql"]) == [])
        #expect(try named(["MSS_INGEST_HOST": "0.0.0.0"]) == ["MSS_INGEST_HOST"])
        #expect(try named(["MSS_INGEST_HOST": "0.0.0.0", "MSS_INGEST_TLS_IN_FRONT": "on"]) == [])
        #expect(try named(["MSS_INGEST_HOST": "0.0.0.0", "MSS_INGEST_PLAIN_HTTP_NETWORKS": "10.0.0.0/8"]) == [])
        let https = ["MSS_INGEST_CERTIFICATE_FILE": "c", "MSS_INGEST_PRIVATE_KEY_FILE": "k"]
        #expect(
            try named(https.merging(["MSS_INGEST_PLAIN_HTTP_NETWORKS": "10.0.0.0/8"]) { $1 })
                == ["MSS_INGEST_PLAIN_HTTP_NETWORKS"], "a port is HTTPS or plain HTTP")
        #expect(try named(["MSS_INGEST_HOST": "0.0.0.0", "MSS_ENVIRONMENT": "development"]) == [])
    }

    @Test("SEC1: with TLS on, what it needs must be there, in development too")
    func files() throws {
        let file = #filePath
        let remote = ["MSS_POSTGRES_HOST": "db.example", "MSS_AMQP_HOST": "mq.example"]
        for environment in ["production", "development"] {
            let on = remote.merging(
                ["MSS_POSTGRES_TLS": "on", "MSS_AMQP_TLS": "on", "MSS_ENVIRONMENT": environment]) { $1 }
            #expect(try named(on) == ["MSS_AMQP_AUTHORITY_FILE", "MSS_POSTGRES_AUTHORITY_FILE"])
            let whole = on.merging(["MSS_POSTGRES_AUTHORITY_FILE": file, "MSS_AMQP_AUTHORITY_FILE": file]) { $1 }
            #expect(try named(whole) == [])
            let half = whole.merging(["MSS_AMQP_CERTIFICATE_FILE": file, "MSS_AMQP_AUTHORITY_FILE": "/none"]) { $1 }
            #expect(
                try named(half) == ["MSS_AMQP_CERTIFICATE_FILE, MSS_AMQP_PRIVATE_KEY_FILE", "MSS_AMQP_AUTHORITY_FILE"])
            // The C library compares only names.
            #expect(try named(whole.merging(["MSS_AMQP_HOST": "10.0.0.1"]) { $1 }) == ["MSS_AMQP_HOST"])
            let own = whole.merging(
                [
                    "MSS_POSTGRES_PASSWORD": "", "MSS_POSTGRES_CERTIFICATE_FILE": file,
                    "MSS_POSTGRES_PRIVATE_KEY_FILE": file,
                ]) { $1 }
            #expect(try named(own) == [], "a certificate says who it is")
        }
        #expect(
            try named(["MSS_INGEST_CERTIFICATE_FILE": file]) == [
                "MSS_INGEST_CERTIFICATE_FILE, MSS_INGEST_PRIVATE_KEY_FILE"
            ])
        #expect(try named(["MSS_INGEST_CERTIFICATE_FILE": file, "MSS_INGEST_PRIVATE_KEY_FILE": file]).count == 1)
    }

    @Test("a list of servers has a port for each; the first one that is on another machine requires TLS")
    func servers() throws {
        func addresses(_ text: String) throws -> [String] {
            let settings = try Settings(
                Self.keys, environment: Self.good.merging(["MSS_AMQP_HOST": text, "MSS_POSTGRES_HOST": text]) { $1 })
            let broker = ProcessSettings.amqpAddresses(settings).map(\.description)
            let configuration = AMQPConfiguration(settings, connectionName: "test")
            #expect((configuration.probe != nil) == (broker.count > 1), "R10: only a cluster is probed")
            #expect(
                PostgresSettings.addresses(settings).map(\.host) == ProcessSettings.amqpAddresses(settings).map(\.host))
            return broker
        }
        #expect(try addresses("a") == ["a:5672"])
        #expect(try addresses("a, b:1,c.example:65535") == ["a:5672", "b:1", "c.example:65535"])
        #expect(try addresses("::1,[::2]:7,[::3]") == ["[::1]:5672", "[::2]:7", "[::3]:5672"])
        #expect(try addresses("/run/postgresql") == ["/run/postgresql:5672"])
        for text in ["a,", ",", "a b", "a:0", "a:65536", "a:x", "a:", "[::1", "[::1]7", "[]:1"] {
            #expect(throws: Settings.Problems.self, "\(text)") { try addresses(text) }
        }
        #expect(try named(["MSS_AMQP_HOST": "127.0.0.1,::1"]) == [])
        #expect(try named(["MSS_AMQP_HOST": "127.0.0.1:1,db.example:2"]) == ["MSS_AMQP_TLS"])
        #expect(try named(["MSS_POSTGRES_HOST": "/run/postgresql,db.example"]) == ["MSS_POSTGRES_TLS"])
        let tls = ["MSS_AMQP_TLS": "on", "MSS_AMQP_AUTHORITY_FILE": #filePath]
        #expect(try named(tls.merging(["MSS_AMQP_HOST": "mq-1,10.0.0.1:5671"]) { $1 }) == ["MSS_AMQP_HOST"])
    }

    @Test("SEC16: a crash leaves no memory on the disk") func coreDumps() async {
        await #expect(processExitsWith: .success) {
            CoreDumps.switchOff()
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
            exit(limit.rlim_cur == 0 && limit.rlim_max == 0 && !CoreDumps.arePossible ? 0 : 1)
        }
    }
}
