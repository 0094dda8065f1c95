import ServiceKit

/// Settings of the ingest API.
enum IngestSettings {
    static let host = SettingKey<String>.text(
        "MSS_INGEST_HOST", "an address to listen on for backends", example: "0.0.0.0", default: "127.0.0.1")
    static let port = SettingKey<Int>.port("MSS_INGEST_PORT", default: 7_080)
    /// Pushes that may wait for their reply at a time; more are answered 503.
    static let inFlightMax = SettingKey<Int>.integer("MSS_INGEST_IN_FLIGHT_MAX", in: 1...100_000, default: 4_096)

    static let keys = [host.erased, port.erased, inFlightMax.erased]
}
