import Foundation
import NIOCore
import NIOPosix
import ServiceKit
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import SessionValidator
@testable import TenantCalls

/// DNS that never answers.
private struct SilentResolver: HostResolving {
    func addresses(of _: String, on loop: any EventLoop) -> EventLoopFuture<[IPAddress]> {
        loop.scheduleTask(in: .seconds(60)) { [] }.futureResult
    }
}

@Suite("Callouts to forbidden addresses", .timeLimit(.minutes(5)))
struct ValidatorCalloutTests {
    /// Spellings of this machine and of other forbidden addresses. `P` is the listener's port.
    ///
    /// The operator's list has every host, so that only the check of the spelling or of the address refuses it.
    static let spellings = [
        // Usual forms.
        "http://127.0.0.1:P/", "http://localhost:P/", "http://[::1]:P/", "http://0.0.0.0:P/", "http://[::]:P/",
        "http://127.0.0.2:P/", "http://127.255.255.254:P/", "http://0.0.0.1:P/",
        // Decimal, octal, hexadecimal, short and mixed forms of inet_aton.
        "http://2130706433:P/", "http://017700000001:P/", "http://0x7f000001:P/", "http://0177.0.0.1:P/",
        "http://0x7f.0.0.1:P/", "http://0x7f.1:P/", "http://127.1:P/", "http://127.0.1:P/", "http://127.00.00.01:P/",
        "http://0177.0x0.0.1:P/", "http://127.0.0.0x1:P/", "http://127.65281:P/", "http://0:P/", "http://00:P/",
        "http://0x0:P/", "http://127.0.0.1.0:P/", "http://127.0.0:P/", "http://383.0.0.1:P/", "http://6425673729:P/",
        // IPv6: mapped, compatible, NAT64, 6to4, Teredo, zones, long forms.
        "http://[::ffff:127.0.0.1]:P/", "http://[::ffff:7f00:1]:P/", "http://[0:0:0:0:0:ffff:127.0.0.1]:P/",
        "http://[::127.0.0.1]:P/", "http://[64:ff9b::127.0.0.1]:P/", "http://[64:ff9b:1::7f00:1]:P/",
        "http://[2002:7f00:1::]:P/", "http://[2001:0:7f00:1::]:P/", "http://[::1%25lo]:P/", "http://[::1%lo]:P/",
        "http://[fe80::1%251]:P/", "http://[0000:0000:0000:0000:0000:0000:0000:0001]:P/", "http://[0::1]:P/",
        "http://::1:P/", "http://[::1]P/", "http://[::1:P/", "http://[127.0.0.1]:P/", "http://[fe80::1]:P/",
        // Metadata services, and other special-purpose addresses.
        "http://169.254.169.254:P/", "http://[fd00:ec2::254]:P/", "http://100.100.100.200:P/", "http://224.0.0.1:P/",
        "http://255.255.255.255:P/", "http://[ff02::1]:P/", "http://[::ffff:169.254.169.254]:P/",
        // Names: dots, case, IDN, other digits and dots, names for this machine.
        "http://localhost.:P/", "http://127.0.0.1.:P/", "http://LOCALHOST:P/", "http://LocalHost:P/",
        "http://loop.example:P/", "http://mapped.example:P/", "http://metadata.example:P/", "http://mixed.example:P/",
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:P/", "http://①②⑦.⓪.⓪.①:P/", "http://127。0。0。1:P/", "http://１２７.0.0.1:P/",
        "http://xn--.example:P/", "http://localhost%2e:P/", "http://%6c%6f%63%61%6c%68%6f%73%74:P/",
        "http://127.0.0.1%00.tenant.example:P/", "http://_.localhost:P/", "http://-localhost:P/",
        // Users, backslashes, blanks, control characters, fragments.
        "http://tenant.example@127.0.0.1:P/", "http://tenant.example:80@127.0.0.1:P/", "http://@127.0.0.1:P/",
        "http://127.0.0.1:P\\@tenant.example/", "http:\\\\127.0.0.1:P/", "http:/\\127.0.0.1:P/",
        "http://tenant.example\\@127.0.0.1:P/", "http://127.0.0.1:P#@tenant.example/", "http://127.0.0.1\t:P/",
        "http://127.0.0.1\n:P/", "http://127.0.0.1:P/\r\nX: y", "\thttp://127.0.0.1:P/", " http://127.0.0.1:P/",
        "ht\ntp://127.0.0.1:P/", "http://127.0.0.1 :P/", "http:// 127.0.0.1:P/", "http://127.0.0.1\u{0}:P/",
        "http:127.0.0.1:P/", "http:/127.0.0.1:P/", "http:///127.0.0.1:P/", "//127.0.0.1:P/", "127.0.0.1:P",
        // Ports.
        "http://127.0.0.1:/", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:0P/",
        "http://127.0.0.1:+P/", "http://127.0.0.1:-1/", "http://127.0.0.1:P:P/", "http://127.0.0.1:Px/",
        // Schemes.
        "gopher://127.0.0.1:P/", "file://127.0.0.1:P/", "unix://127.0.0.1:P/", "ws://127.0.0.1:P/",
        "http+unix://%2Ftmp%2Fx/", "javascript:alert(1)", "https://127.0.0.1:P/", "https://localhost:P/",
    ]

    private static let resolver = FakeResolver([
        "localhost": [["127.0.0.1", "::1"]], "loop.example": [["127.0.0.1"]], "mapped.example": [["::ffff:7f00:1"]],
        "metadata.example": [["169.254.169.254"]], "mixed.example": [["8.8.8.8", "127.0.0.1"]],
        "xn--.example": [["127.0.0.1"]],
    ])

    private func check(_ url: String, _ endpoint: SessionEndpoint) async -> CheckOutcome {
        await endpoint.check(url, instanceID: InstanceID("i"), userID: UserID("u"), sessionID: "s1")
    }

    @Test("SEC12: no spelling of a URL reaches a forbidden address; each is refused with a reason")
    func spelled() async throws {
        let listener = try CountingListener()
        defer { listener.stop() }
        let port = "\(listener.port)"
        let hosts = [
            "0.0.0.0/0", "[::/0]", "localhost", "loop.example", "mapped.example", "metadata.example", "mixed.example",
            "xn--.example", "tenant.example",
        ]
        let entries = hosts.flatMap { ["http://\($0):\(port)", "https://\($0):\(port)"] }
        let endpoint = try SessionEndpoint(
            limit: .seconds(10), connectLimit: .seconds(10),
            policy: CalloutPolicy(allowed: entries.compactMap { AllowedCallout($0) }),
            resolver: Self.resolver)
        #expect(Self.spellings.count >= 60)
        for spelling in Self.spellings {
            let url = spelling.replacing("P", with: port)
            let outcome = await check(url, endpoint)
            guard case .noAnswer(let reason) = outcome, reason.hasPrefix("not called: "), reason.count > 20 else {
                Issue.record("\(url.debugDescription): \(outcome)")
                continue
            }
        }
        endpoint.close()
        #expect(try await listener.isUntouched())
    }

    /// Tenants at 127.0.0.2 and 127.0.0.1. A port that is free at one address can be in use at the other.
    private static func tenantsAtOnePort() throws -> (FakeTenant, FakeTenant) {
        for _ in 0..<20 {
            let one = try FakeTenant(answer: FakeTenant.valid, keepsOpen: false, address: "127.0.0.2")
            if let other = try? FakeTenant(answer: FakeTenant.valid, keepsOpen: false, port: one.port) {
                return (one, other)
            }
            _ = one.stop()
        }
        throw Failure("no port is free at both addresses")
    }

    @Test("SEC12: a name is resolved once for each call, and the connection goes to the address that was checked")
    func rebinding() async throws {
        let (tenant, forbidden) = try Self.tenantsAtOnePort()
        let resolver = FakeResolver(["tenant.example": [["127.0.0.2"], ["127.0.0.1"], ["127.0.0.2", "127.0.0.1"], []]])
        let entries = ["http://tenant.example:\(tenant.port)", "127.0.0.2:\(tenant.port)"]
        let endpoint = try SessionEndpoint(
            limit: .seconds(10), connectLimit: .seconds(10),
            policy: CalloutPolicy(allowed: entries.compactMap { AllowedCallout($0) }, allowsLoopback: true),
            resolver: resolver)
        let url = "http://tenant.example:\(tenant.port)/"
        #expect(await check(url, endpoint) == .valid)
        #expect(resolver.count == 1)
        for words in ["127.0.0.1 is private", "127.0.0.1 is private", "has no address"] {
            guard case .noAnswer(let reason) = await check(url, endpoint) else { throw Failure("it was called") }
            #expect(reason.contains(words))
        }
        #expect(resolver.count == 4)
        endpoint.close()
        let question = tenant.stop()
        #expect(question.contains("\r\nHost: tenant.example:\(tenant.port)\r\n"), "the name goes into the Host field")
        #expect(forbidden.stop().isEmpty)
    }

    @Test(
        "SEC12: a redirect is not followed, to any target",
        arguments: ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent"])
    func redirect(_ status: String) async throws {
        let listener = try CountingListener()
        defer { listener.stop() }
        let tenant = try FakeTenant(
            answer: "HTTP/1.1 \(status)\r\nLocation: http://127.0.0.1:\(listener.port)/\r\nContent-Length: 0\r\n\r\n",
            keepsOpen: false)
        let entries = ["http://127.0.0.1:\(tenant.port)", "http://127.0.0.1:\(listener.port)"]
        let endpoint = try SessionEndpoint(
            limit: .seconds(10), connectLimit: .seconds(10),
            policy: CalloutPolicy(allowed: entries.compactMap { AllowedCallout($0) }, allowsLoopback: true))
        let outcome = await check("http://127.0.0.1:\(tenant.port)/", endpoint)
        #expect(outcome == .unknown("the tenant answered with status \(status.prefix(3))"))
        endpoint.close()
        _ = tenant.stop()
        #expect(try await listener.isUntouched())
    }

    @Test("SEC12: a name whose DNS does not answer is unknown at the limit, however long it takes")
    func silentDNS() async throws {
        let endpoint = try SessionEndpoint(
            limit: .milliseconds(200),
            policy: CalloutPolicy(allowed: ["tenant.example:443"].compactMap { AllowedCallout($0) }),
            resolver: SilentResolver())
        let outcome = await check("https://tenant.example/", endpoint)
        #expect(outcome == .noAnswer("the call failed: \(CalloutError.notInTime)"))
        endpoint.close()
    }

    @Test("the system's resolver finds this machine's name, and nothing for one that there is not")
    func systemResolver() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let found = try await SystemResolver().addresses(of: "localhost", on: loop).get()
        #expect(!found.isEmpty)
        for address in found { #expect(AddressKind(address) == .loopback) }
        #expect(try await SystemResolver().addresses(of: "no-such-host.invalid", on: loop).get().isEmpty)
    }

    @Test("SEC12: a host is looked up once at a time, and no more hosts than there are threads for")
    func boundedLookups() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        let gate = DispatchSemaphore(value: 0)
        let begun = Mutex(0)
        let address = try #require(IPAddress("8.8.8.8"))
        let resolver = SystemResolver { _ in
            begun.withLock { $0 += 1 }
            gate.wait()
            return [address]
        }
        let hosts = (0..<SystemResolver.lookupsMax).map { "host-\($0).example" }
        let answers = (hosts + hosts).map { resolver.addresses(of: $0, on: loop) }
        await #expect(throws: CalloutRefusal.self) {
            try await resolver.addresses(of: "one-more.example", on: loop).get()
        }
        for _ in hosts { gate.signal() }
        for answer in answers { #expect(try await answer.get() == [address]) }
        #expect(begun.withLock { $0 } == hosts.count)
        gate.signal()
        #expect(try await resolver.addresses(of: "one-more.example", on: loop).get() == [address])
    }
}
