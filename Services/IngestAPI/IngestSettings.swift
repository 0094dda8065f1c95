import ServiceKit

/// The settings of the ingest API beside the common ones.
enum IngestSettings {
    /// Where business servers reach the API.
    static let host = SettingKey<String>.text(
        "MSS_INGEST_HOST", "an address of this host to listen on", example: "0.0.0.0", default: "127.0.0.1")
    /// Port of the API.
    static let port = SettingKey<Int>.port("MSS_INGEST_PORT", default: 7_080)
    /// Pushes that may wait for the store at one time; more are answered 503.
    static let inFlightMaximum = SettingKey<Int>.integer("MSS_INGEST_IN_FLIGHT_MAX", in: 1...1_000_000, default: 4_096)

    /// For the process's list.
    static let keys = [host.erased, port.erased, inFlightMaximum.erased]
}
