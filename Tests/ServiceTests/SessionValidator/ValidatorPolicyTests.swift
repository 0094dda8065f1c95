import ServiceKit
import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("Callout policy")
struct ValidatorPolicyTests {
    static let kinds: [(String, AddressKind?)] = [
        ("8.8.8.8", .global), ("1.1.1.1", .global), ("172.32.0.1", .global), ("172.15.255.255", .global),
        ("100.128.0.0", .global), ("2606:4700::1111", .global), ("2a00:1450::1", .global),
        ("9.255.255.255", .global), ("11.0.0.0", .global), ("100.63.255.255", .global), ("198.17.255.255", .global),
        ("10.0.0.1", .private), ("10.255.255.255", .private), ("100.127.255.255", .private),
        ("192.168.255.255", .private), ("172.16.0.1", .private), ("172.31.255.255", .private),
        ("192.168.1.1", .private),
        ("100.64.0.1", .private), ("fd12:3456::1", .private), ("fc00::1", .private),
        ("127.0.0.1", .loopback), ("127.255.255.254", .loopback), ("::1", .loopback),
        // Denied, also when the list names them.
        ("0.0.0.0", nil), ("0.1.2.3", nil), ("169.254.169.254", nil), ("169.254.0.1", nil), ("100.100.100.200", nil),
        ("168.63.129.16", nil), ("192.0.0.192", nil), ("192.0.2.1", nil), ("198.18.0.1", nil), ("224.0.0.1", nil),
        ("239.255.255.255", nil), ("240.0.0.1", nil), ("255.255.255.255", nil), ("192.88.99.1", nil),
        ("198.19.255.255", nil), ("198.51.100.1", nil), ("203.0.113.1", nil), ("169.254.255.255", nil),
        ("::", nil), ("::ffff:127.0.0.1", nil), ("::ffff:8.8.8.8", nil), ("::7f00:1", nil), ("::8.8.8.8", nil),
        ("64:ff9b::7f00:1", nil), ("64:ff9b::808:808", nil), ("64:ff9b:1::1", nil), ("2002:7f00:1::", nil),
        ("2002:808:808::1", nil), ("2001::1", nil), ("2001:0:7f00:1::", nil), ("2001:db8::1", nil), ("fe80::1", nil),
        ("febf::1", nil), ("fec0::1", nil), ("ff02::1", nil), ("fd00:ec2::254", nil), ("fd20:ce::254", nil),
        ("100::1", nil), ("5f00::1", nil), ("4000::1", nil), ("2001:1::1", nil), ("2001:20::1", nil),
        ("2001:1ff:ffff::1", nil),
        ("3fff::1", nil), ("3fff:fff::1", nil),
    ]

    @Test("SEC12: every range has its kind, and addresses without a kind are denied", arguments: kinds)
    func kind(_ row: (text: String, kind: AddressKind?)) throws {
        let kind = AddressKind(try #require(IPAddress(row.text)))
        if let expected = row.kind {
            #expect(kind == expected)
        } else if case .denied = kind {
        } else {
            Issue.record("\(row.text) is \(kind)")
        }
    }

    @Test("an address has one form, which every parser reads", arguments: kinds)
    func spelled(_ row: (text: String, kind: AddressKind?)) throws {
        let address = try #require(IPAddress(row.text))
        #expect(IPAddress(address.description) == address)
    }

    @Test(
        "other texts are not addresses",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", "0x7f.0.0.1", "1.2.3.4 ", "1..3.4", "+1.2.3.4",
            "1.2.3.-4",
            "fe80::1%lo", "::1::", "[::1]", "١.2.3.4", "1.2.3.4\0",
        ])
    func noAddress(_ text: String) { #expect(IPAddress(text) == nil) }

    @Test("a range contains the addresses with its prefix, of its own family")
    func ranges() throws {
        let range = try #require(IPRange("10.16.0.0/12"))
        for (text, isInside) in [
            ("10.16.0.0", true), ("10.31.255.255", true), ("10.32.0.0", false), ("10.15.255.255", false),
            ("::a10:0", false),
        ] { #expect(range.contains(try #require(IPAddress(text))) == isInside) }
        let everything = try #require(IPRange("0.0.0.0/0"))
        #expect(everything.contains(try #require(IPAddress("255.1.2.3"))))
        for text in ["10.1.0.0/12", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "/8", "::/129", "ten/8", "1.2.3.4/8/8"] {
            #expect(IPRange(text) == nil, "\(text)")
        }
    }

    @Test("an entry has one of the forms, and everything else is an error of the settings")
    func entries() {
        for text in [
            "tenant.example:443", "Tenant.Example:8080", "http://tenant.example:80", "https://tenant.example:443",
            "10.1.2.3:443", "10.1.0.0/16:8443", "[::1]:9000", "[fd00::/8]:443", "http://[fd00::1]:80",
        ] { #expect(AllowedCallout(text) != nil, "\(text)") }
        for text in [
            "", "tenant.example", "tenant.example:", ":443", "tenant.example:0", "tenant.example:65536", "*:443",
            "*.example:443", "tenant.example:443/path", "ftp://tenant.example:21", "10.1.2.3/8:443", "::1:443",
            "[10.1.2.3]:443", "fd00::/8:443", "user@tenant.example:443", "tenant.example.:443", "0x7f.1:80",
        ] { #expect(AllowedCallout(text) == nil, "\(text)") }
    }

    private static let policy = CalloutPolicy(
        allowed: [
            "Tenant.example:8443", "secure.example:443", "http://plain.example:80", "[::1]:9000", "10.1.0.0/16:8443",
            "127.0.0.1:9000", "0.0.0.0/0:7000",
        ].compactMap { AllowedCallout($0) }, ownNetworks: ["10.1.9.0/24"].compactMap { IPRange($0) },
        allowsLoopback: true)

    static let urls: [(String, Bool)] = [
        ("https://tenant.example:8443/check", true),
        ("HTTPS://TENANT.example:8443/check?x=1", true),
        ("https://secure.example/check", true),
        ("https://secure.example:443", true),
        ("https://secure.example?x=%2F", true),
        ("http://plain.example/", true),
        ("https://[::1]:9000/", true),
        ("https://[0:0:0:0:0:0:0:1]:9000/", true),
        ("https://127.0.0.1:9000/", true),
        ("https://10.1.2.3:8443/", true),
        ("https://8.8.8.8:7000/", true),
        // Another scheme, host or port than an entry's.
        ("http://tenant.example:8443/check", false),
        ("https://plain.example:80/", false),
        ("https://tenant.example/check", false),
        ("https://tenant.example:8444/check", false),
        ("https://sub.tenant.example:8443/check", false),
        ("https://other.example:8443/check", false),
        ("https://10.2.2.3:8443/", false),
        ("https://10.1.2.3:8444/", false),
        // Private and special-purpose addresses, although an entry names them.
        ("https://10.1.9.1:8443/", false),
        ("https://169.254.169.254:7000/", false),
        ("ftp://tenant.example:8443/check", false),
        ("file:///tenant.example:8443", false),
        ("unix://tenant.example:8443/", false),
        ("http+unix://tenant.example:8443/", false),
        ("//tenant.example:8443/check", false),
        ("tenant.example:8443", false),
        ("https:///check", false),
        ("https://", false),
        ("", false),
        ("https://tenant.example:8443/" + String(repeating: "x", count: 3_000), false),
    ]

    @Test("SEC12, V7: only what an entry allows may be called", arguments: urls)
    func allowed(_ row: (url: String, isAllowed: Bool)) {
        let url = try? Self.policy.url(row.url)
        #expect((url != nil) == row.isAllowed)
    }

    @Test("SEC12, V7: no address may be called unless an operator allows it")
    func deniedByDefault() {
        for url in ["https://tenant.example/", "https://8.8.8.8/", "http://127.0.0.1:80/"] {
            #expect(throws: CalloutRefusal.self) { try CalloutPolicy(allowed: []).url(url) }
        }
    }

    @Test("SEC12: an allowed name may have global addresses, and private ones where an entry names them with the port")
    func resolved() {
        func isCallable(_ addresses: String..., port: Int = 8_443) -> Bool {
            (try? Self.policy.check(addresses.compactMap { IPAddress($0) }, port: port)) != nil
        }
        #expect(isCallable("8.8.8.8") && isCallable("8.8.8.8", "2606:4700::1") && isCallable("10.1.2.3"))
        #expect(isCallable("127.0.0.1", port: 9_000))
        #expect(!isCallable())
        #expect(!isCallable("10.1.2.3", port: 443) && !isCallable("192.168.0.1") && !isCallable("127.0.0.1"))
        #expect(!isCallable("8.8.8.8", "10.9.9.9"), "one bad address spoils them all")
        #expect(!isCallable("10.1.9.7"), "our own network")
        #expect(!isCallable("169.254.169.254", port: 7_000), "an entry does not help here")
    }

    @Test("SEC12: outside of development loopback is refused, though an entry names it")
    func loopback() {
        let policy = CalloutPolicy(allowed: ["127.0.0.0/8:80"].compactMap { AllowedCallout($0) })
        #expect(throws: CalloutRefusal.self) { try policy.check([IPAddress("127.0.0.1")].compactMap(\.self), port: 80) }
    }

    @Test("the request goes by the URL's own parts")
    func parts() throws {
        let url = try CalloutURL("https://Tenant.example:8443/a/b?c=d")
        #expect(url.hostField == "tenant.example:8443" && url.requestTarget == "/a/b?c=d")
        let bare = try CalloutURL("http://[::1]?x")
        #expect(bare.hostField == "[0:0:0:0:0:0:0:1]" && bare.requestTarget == "/?x" && bare.port == 80)
    }
}
