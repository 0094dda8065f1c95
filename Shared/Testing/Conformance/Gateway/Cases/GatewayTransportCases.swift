import DeviceProtocol
import SwiftProtobuf

/// The TLS handshake and its application protocol.
enum GatewayTransportCases {
    static let all: [GatewayCase] = [
        GatewayCase("transport/alpn", "Transport") { target in
            let connection = try await target.connect(applicationProtocols: ["h2", "mss/1"])
            try Mismatch.unless(
                connection.negotiated == "mss/1", "ALPN mss/1", seen: connection.negotiated ?? "no name")
        },
        GatewayCase("transport/no-alpn", "Transport") { target in
            let connection = try await target.connect(applicationProtocols: [])
            connection.send(target.fresh().connect)
            try await connection.expect(.opens)
        },
    ]
}
