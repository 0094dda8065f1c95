import NIOCore
import ServiceKit
import Testing

@Suite("Networks for plain HTTP") struct PlainHTTPNetworksTests {
    @Test("SEC1: from named networks and this machine alone, by the connection's own address") func networks() throws {
        let networks = PlainHTTPNetworks(["10.0.0.0/8", "fd00::/8"].compactMap { IPRange($0) })
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "127.0.0.1", "::1"] {
            #expect(networks.allow(try SocketAddress(ipAddress: address, port: 1)), "\(address)")
        }
        for address in ["11.0.0.1", "192.168.0.1", "::ffff:11.0.0.1", "2001:db8::1"] {
            #expect(!networks.allow(try SocketAddress(ipAddress: address, port: 1)), "\(address)")
        }
        #expect(!networks.allow(nil))
        #expect(PlainHTTPNetworks([]).allow(try SocketAddress(ipAddress: "127.0.0.1", port: 1)))
    }
}
